#include "attend/steps/packed_embedding.h"

#include <algorithm>
#include <utility>

#include "attend/ops/kernel_tensors.h"

namespace attend {
namespace {

using at::Tensor;

// Answers are rarely longer; of later positions a vector is made when it is read.
constexpr int64_t kept_positions = 512;

}  // namespace

PackedEmbedding::PackedEmbedding(std::shared_ptr<const PositionedEmbedding> embedding)
    : embedding_(std::move(embedding)) {
  positions_ = embedding_->position_vectors(std::min(kept_positions, embedding_->positions()));
}

Tensor PackedEmbedding::rows(const Tensor& tokens, const std::vector<int64_t>& positions) const {
  const Tensor plain = contiguous_numbers(tokens), table = contiguous_numbers(embedding_->weight());
  const int64_t depth = table.size(1);
  const auto scale = static_cast<float>(embedding_->scale());
  Tensor rows = at::empty({tokens.numel(), depth});
  for (int64_t r = 0; r < tokens.numel(); ++r) {
    const int64_t position = positions[static_cast<size_t>(r)];
    const auto* vector =
        pointer_of<const float>(table) + pointer_of<const int64_t>(plain)[r] * depth;
    float* row = pointer_of<float>(rows) + r * depth;
    for (int64_t i = 0; i < depth; ++i) row[i] = vector[i] * scale;
    if (!positions_.defined()) continue;
    Tensor later;
    if (position >= positions_.size(0)) later = embedding_->position_vectors(1, position);
    const float* added = later.defined() ? pointer_of<const float>(later)
                                         : pointer_of<const float>(positions_) + position * depth;
    for (int64_t i = 0; i < depth; ++i) row[i] += added[i];
  }
  return rows;
}

}  // namespace attend
