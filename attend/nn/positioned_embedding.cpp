#include "attend/nn/positioned_embedding.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/nn/shared_sequence.h"
#include "attend/ops/kernel_tensors.h"

namespace attend {
namespace {

using TokenGroups = std::vector<std::vector<int64_t>>;

// Adds the rows of each group, and gives all of them the sum.
at::Tensor summed_rows(const at::Tensor& gradient, const TokenGroups& groups) {
  std::vector<at::Tensor> indices, sums;
  for (const std::vector<int64_t>& group : groups) {
    indices.push_back(at::tensor(group, at::kLong).to(gradient.device()));
    const at::Tensor rows = gradient.index_select(0, indices.back());
    sums.push_back(rows.sum(0, /*keepdim=*/true).expand_as(rows));
  }
  return gradient.index_copy(0, at::cat(indices), at::cat(sums));
}

// A token of the groups that is not one of `tokens`, if there is one.
std::optional<int64_t> absent_token(const TokenGroups& groups, int64_t tokens) {
  for (const std::vector<int64_t>& group : groups)
    for (const int64_t token : group)
      if (token < 0 || token >= tokens) return token;
  return std::nullopt;
}

}  // namespace

std::optional<SinusoidOrder> sinusoid_order(Positions positions) {
  if (positions == Positions::sinusoidal) return SinusoidOrder::alternating;
  if (positions == Positions::sinusoidal_halves) return SinusoidOrder::halves;
  if (positions == Positions::sinusoidal_fairseq) return SinusoidOrder::fairseq;
  return std::nullopt;
}

PositionedEmbedding::PositionedEmbedding(torch::nn::Embedding embedding, const EmbeddingForm& form,
                                         bool is_own)
    : sinusoids_(sinusoid_order(form.positions)),
      scale_(1),
      absent_(absent_token(form.equal, embedding->weight.size(0))),
      equal_(absent_ ? TokenGroups{} : form.equal),
      embedding_(std::move(embedding)) {
  const int64_t depth = embedding_->weight.size(1);
  const double root = std::sqrt(static_cast<double>(depth));
  if (form.scaled) scale_ = root;
  if (is_own) {
    register_module("tokens", embedding_);
    draw(1 / root);
    // Rows of equal values and gradients stay equal.
    if (!equal_.empty())
      embedding_->weight.register_hook(
          [groups = equal_](const at::Tensor& gradient) { return summed_rows(gradient, groups); });
  }
  if (form.positions == Positions::learned)
    learned_ =
        register_module("positions", std::make_shared<LearnedPositions>(form.maximum, depth));
  if (form.norm_epsilon)
    norm_ =
        register_module("norm", std::make_shared<Norm>(depth, NormKind::layer, *form.norm_epsilon));
}

PositionedEmbedding::PositionedEmbedding(int64_t tokens, int64_t depth, const EmbeddingForm& form)
    : PositionedEmbedding(torch::nn::Embedding(tokens, depth), form, /*is_own=*/true) {}

PositionedEmbedding::PositionedEmbedding(const PositionedEmbedding& tokens,
                                         const EmbeddingForm& form)
    : PositionedEmbedding(tokens.embedding_, form, /*is_own=*/false) {}

void PositionedEmbedding::draw(double deviation) {
  const at::NoGradGuard no_gradient;
  at::Tensor& weight = embedding_->weight;
  torch::nn::init::normal_(weight, 0, deviation);
  for (const std::vector<int64_t>& group : equal_)
    for (const int64_t token : group)
      weight.select(0, token).copy_(weight.select(0, group.front()));
}

at::Tensor PositionedEmbedding::forward(const at::Tensor& tokens, int64_t offset, double dropout,
                                        const Pass& pass) {
  if (absent_)
    fail("[embedding] token {} shares a vector, and there are {} tokens; take one of them",
         *absent_, embedding_->weight.size(0));
  at::Tensor vectors = pass.watched(WatchedVectors::input, embedding_->forward(tokens) * scale_);
  const Runs runs = positions_here(pass, offset, tokens.size(1));
  if (sinusoids_)
    vectors = by_runs(vectors, runs, [this](const at::Tensor& x, int64_t first) {
      return x + sinusoids(x.size(1), first, x.options());
    });
  if (learned_)
    vectors = by_runs(vectors, runs, [this](const at::Tensor& x, int64_t first) {
      return learned_->forward(x, first);
    });
  if (norm_) vectors = norm_->forward(vectors, pass);
  return attend::dropout(vectors, dropout, pass);
}

at::Tensor PositionedEmbedding::next(const at::Tensor& tokens,
                                     const std::vector<int64_t>& positions) {
  const at::Tensor& weight = embedding_->weight;
  const bool is_plain =
      weight.is_cpu() && weight.scalar_type() == at::kFloat && weight.is_contiguous();
  if (at::GradMode::is_enabled() || !is_plain) {
    std::vector<at::Tensor> rows;
    for (int64_t n = 0; n < tokens.size(0); ++n)
      rows.push_back(
          forward(tokens.narrow(0, n, 1).unsqueeze(1), positions[static_cast<size_t>(n)], 0, {}));
    return at::cat(rows).squeeze(1);
  }
  const auto [first, last] = std::minmax_element(positions.begin(), positions.end());
  const int64_t count = tokens.size(0), depth = weight.size(1);
  const at::Tensor ids = contiguous_numbers(tokens);
  const at::Tensor added =
      count > 0 ? position_vectors(*first, *last + 1, weight.options()) : at::Tensor();
  at::Tensor vectors = at::empty({count, depth}, weight.options());
  const auto scale = static_cast<float>(scale_);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t token = pointer_of<const int64_t>(ids)[n];
    if (token < 0 || token >= weight.size(0))
      fail("[embedding] token {} of {}; take ids of the vocabulary that the model was built with",
           token, weight.size(0));
    const float* from = weight.data_ptr<float>() + token * depth;
    float* to = vectors.data_ptr<float>() + n * depth;
    for (int64_t k = 0; k < depth; ++k) to[k] = from[k] * scale;
    if (!added.defined()) continue;
    const float* position =
        added.data_ptr<float>() + (positions[static_cast<size_t>(n)] - *first) * depth;
    for (int64_t k = 0; k < depth; ++k) to[k] += position[k];
  }
  return norm_ ? norm_->forward(vectors, {}) : vectors;
}

at::Tensor PositionedEmbedding::position_vectors(int64_t first, int64_t end,
                                                 const at::TensorOptions& options) {
  if (sinusoids_) return sinusoids(end - first, first, options);
  if (!learned_) return {};
  return learned_->forward(at::zeros({end - first, embedding_->weight.size(1)}, options), first);
}

at::Tensor PositionedEmbedding::sinusoids(int64_t count, int64_t offset,
                                          const at::TensorOptions& options) {
  constexpr int64_t max_kept = 4096;
  // LibTorch computes the last numbers of an array, which do not fill a SIMD vector, with different
  // bits. These extra positions are never read.
  constexpr int64_t unread = 16;
  const int64_t depth = embedding_->weight.size(1), end = offset + count;
  if (end > max_kept || options.dtype() != at::kFloat || !options.device().is_cpu())
    return sinusoidal_positions(count, depth, offset, options, *sinusoids_);
  const std::lock_guard lock(mutex_);
  if (!kept_.defined() || kept_.size(0) < end + unread)
    kept_ = sinusoidal_positions(std::min(max_kept, std::max<int64_t>(64, 2 * end)) + unread, depth,
                                 0, at::kFloat, *sinusoids_);
  return kept_.narrow(0, offset, count);
}

int64_t PositionedEmbedding::positions() const {
  return learned_ ? learned_->maximum() : std::numeric_limits<int64_t>::max();
}

}  // namespace attend
