#include "attend/data/batches.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "attend/base/error.h"
#include "attend/data/random-inl.h"
#include "attend/data/vocabulary.h"

namespace attend {
namespace {

// Batches a pool: enough that neighbours in length are near, few enough that epochs differ.
constexpr int64_t pool_batches = 100;

// `ids` at the front of row `row`, the rest of it as it was.
void fill_row(const at::Tensor& matrix, int64_t row, const std::vector<int64_t>& ids) {
  std::copy(ids.begin(), ids.end(), matrix.data_ptr<int64_t>() + row * matrix.size(1));
}

at::Tensor empty_sources(const EncodedPair& first, int64_t rows, int64_t longest) {
  if (first.frames.defined()) return at::zeros({rows, longest, first.frames.size(1)}, at::kFloat);
  return at::full({rows, longest}, Vocabulary::padding, at::kLong);
}

void fill_frames(const at::Tensor& sources, int64_t row, const EncodedPair& pair, int64_t index) {
  const at::Tensor& frames = pair.frames;
  if (!frames.defined() || frames.size(1) != sources.size(2))
    fail("[make_batch] pair {} has frames of depth {}; the batch has {}", index,
         frames.defined() ? frames.size(1) : 0, sources.size(2));
  sources.select(0, row).narrow(0, 0, frames.size(0)).copy_(frames);
}

}  // namespace

std::vector<std::vector<int64_t>> batches_by_length(const std::vector<EncodedPair>& pairs,
                                                    int64_t batch_size, uint64_t seed,
                                                    int64_t epoch) {
  if (batch_size < 1) fail("[batches_by_length] batch size {}; it must be at least 1", batch_size);
  const auto count = static_cast<int64_t>(pairs.size());
  auto random = internal::generator(seed, epoch);
  std::vector<int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  internal::shuffle(order, random);

  const auto shorter = [&](int64_t a, int64_t b) {
    const auto lengths = [&](int64_t i) {
      const EncodedPair& pair = pairs[static_cast<size_t>(i)];
      return std::tuple(pair.source_length(), pair.target.size());
    };
    return lengths(a) < lengths(b);
  };
  // A batch larger than all the pairs is all of them; this also keeps the products in range.
  const int64_t size = std::max<int64_t>(std::min(batch_size, count), 1);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t first = 0; first < count; first += size * pool_batches) {
    const int64_t last = std::min(first + size * pool_batches, count);
    std::stable_sort(order.begin() + first, order.begin() + last, shorter);
    for (int64_t i = first; i < last; i += size) {
      batches.emplace_back(order.begin() + i, order.begin() + std::min(i + size, last));
    }
  }
  internal::shuffle(batches, random);
  return batches;
}

Batch make_batch(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& indices) {
  if (indices.empty()) fail("[make_batch] no indices; a batch has at least one pair");
  int64_t longest_source = 0, longest_target = 0;
  for (const int64_t index : indices) {
    if (index < 0 || index >= static_cast<int64_t>(pairs.size())) {
      fail("[make_batch] index {} is not one of the {} pairs", index, pairs.size());
    }
    const EncodedPair& pair = pairs[static_cast<size_t>(index)];
    longest_source = std::max(longest_source, pair.source_length());
    longest_target = std::max(longest_target, static_cast<int64_t>(pair.target.size()) + 1);
  }
  const auto rows = static_cast<int64_t>(indices.size());
  Batch batch;
  batch.source = empty_sources(pairs[static_cast<size_t>(indices[0])], rows, longest_source);
  batch.target = at::full({rows, longest_target}, Vocabulary::padding, at::kLong);
  batch.source_lengths = at::empty({rows}, at::kLong);
  batch.target_lengths = at::empty({rows}, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t index = indices[static_cast<size_t>(row)];
    const EncodedPair& pair = pairs[static_cast<size_t>(index)];
    std::vector<int64_t> target = pair.target;
    target.push_back(Vocabulary::end);
    if (batch.source.dim() == 3)
      fill_frames(batch.source, row, pair, index);
    else
      fill_row(batch.source, row, pair.source);
    fill_row(batch.target, row, target);
    batch.source_lengths.data_ptr<int64_t>()[row] = pair.source_length();
    batch.target_lengths.data_ptr<int64_t>()[row] = static_cast<int64_t>(target.size());
  }
  return batch;
}

}  // namespace attend
