#include "attend/data/batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/random.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

// Batches per pool: many enough for similar lengths, few enough for different epochs.
constexpr int64_t pool_batches = 100;

std::pair<int64_t, int64_t> lengths_of(const EncodedPair& pair) {
  return {pair.source_length(), pair.target_length()};
}

// Number of rows of a padded batch, and their lengths.
struct BatchShape {
  int64_t rows = 0, source = 0, target = 0;

  BatchShape with(const EncodedPair& pair) const {
    const auto [source_length, target_length] = lengths_of(pair);
    return {rows + 1, std::max(source, source_length), std::max(target, target_length)};
  }
};

// Returns batches of about `size` pairs; fits(shape) returns whether a batch may have that shape.
template <class Fits>
std::vector<std::vector<int64_t>> grouped(const std::vector<EncodedPair>& pairs, int64_t size,
                                          uint64_t seed, int64_t epoch, Fits fits) {
  const auto count = static_cast<int64_t>(pairs.size());
  std::mt19937_64 random = internal::generator(seed, epoch);
  std::vector<int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  internal::shuffle(order, random);

  const auto pair_at = [&](int64_t i) -> const EncodedPair& {
    return pairs[static_cast<size_t>(i)];
  };
  const auto shorter = [&](int64_t a, int64_t b) {
    return lengths_of(pair_at(a)) < lengths_of(pair_at(b));
  };
  // If size exceeds the number of pairs, a batch has all of them; this also prevents overflow.
  const int64_t pool = pool_batches * std::max<int64_t>(std::min(size, count), 1);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t first = 0; first < count; first += pool) {
    const int64_t last = std::min(first + pool, count);
    std::stable_sort(order.begin() + first, order.begin() + last, shorter);
    BatchShape shape;
    for (int64_t i = first; i < last; ++i) {
      const int64_t index = order[static_cast<size_t>(i)];
      shape = shape.with(pair_at(index));
      if (i == first || !fits(shape)) {
        batches.emplace_back();
        shape = BatchShape().with(pair_at(index));
      }
      batches.back().push_back(index);
    }
  }
  internal::shuffle(batches, random);
  return batches;
}

// Writes `ids` at the beginning of a row; the rest stays as it was.
void fill_row(const at::Tensor& matrix, int64_t row, const std::vector<int64_t>& ids) {
  std::copy(ids.begin(), ids.end(), matrix.data_ptr<int64_t>() + row * matrix.size(1));
}

at::Tensor empty_sources(const EncodedPair& first, int64_t rows, int64_t longest) {
  if (first.frames.defined()) return at::zeros({rows, longest, first.frames.size(1)}, at::kFloat);
  return at::full({rows, longest}, Vocabulary::padding, at::kLong);
}

// [rows, labels], padded; undefined if targets are not sets of labels.
at::Tensor labels_of(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& indices) {
  size_t longest = 0;
  for (const int64_t index : indices) {
    const auto& labels = pairs[static_cast<size_t>(index)].labels;
    if (!labels) return {};
    longest = std::max(longest, labels->size());
  }
  const auto rows = static_cast<int64_t>(indices.size());
  at::Tensor all = at::full({rows, static_cast<int64_t>(longest)}, Vocabulary::padding, at::kLong);
  for (int64_t row = 0; row < rows; ++row)
    fill_row(all, row, *pairs[static_cast<size_t>(indices[static_cast<size_t>(row)])].labels);
  return all;
}

void fill_frames(const at::Tensor& sources, int64_t row, const EncodedPair& pair, int64_t index) {
  const at::Tensor& frames = pair.frames;
  if (!frames.defined() || frames.size(1) != sources.size(2))
    fail("[make_batch] pair {} has frames of depth {}; the batch has {}", index,
         frames.defined() ? frames.size(1) : 0, sources.size(2));
  sources.select(0, row).narrow(0, 0, frames.size(0)).copy_(frames);
}

}  // namespace

void drop_unknown_targets(std::vector<EncodedPair>& pairs) {
  std::erase_if(pairs, [](const EncodedPair& pair) {
    return std::find(pair.target.begin(), pair.target.end(), Vocabulary::unknown) !=
           pair.target.end();
  });
}

std::vector<std::vector<int64_t>> batches_by_length(const std::vector<EncodedPair>& pairs,
                                                    int64_t batch_size, uint64_t seed,
                                                    int64_t epoch) {
  if (batch_size < 1) fail("[batches_by_length] batch size {}; it must be at least 1", batch_size);
  return grouped(pairs, batch_size, seed, epoch,
                 [&](const BatchShape& shape) { return shape.rows <= batch_size; });
}

std::vector<std::vector<int64_t>> batches_by_tokens(const std::vector<EncodedPair>& pairs,
                                                    int64_t tokens, uint64_t seed, int64_t epoch) {
  if (tokens < 1) fail("[batches_by_tokens] batches of {} tokens; at least 1 is wanted", tokens);
  int64_t all = 0;
  for (const EncodedPair& pair : pairs) all += lengths_of(pair).first + lengths_of(pair).second;
  const auto count = static_cast<int64_t>(pairs.size());
  const int64_t mean = std::max<int64_t>(all / std::max<int64_t>(count, 1), 1);
  return grouped(pairs, tokens / mean, seed, epoch, [&](const BatchShape& shape) {
    return shape.rows * (shape.source + shape.target) <= tokens;
  });
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
    longest_target = std::max(longest_target, pair.target_length());
  }
  const auto rows = static_cast<int64_t>(indices.size());
  Batch batch;
  batch.source = empty_sources(pairs[static_cast<size_t>(indices[0])], rows, longest_source);
  batch.target = at::full({rows, longest_target}, Vocabulary::padding, at::kLong);
  batch.source_lengths = at::empty({rows}, at::kLong);
  batch.target_lengths = at::empty({rows}, at::kLong);
  if (pairs[static_cast<size_t>(indices[0])].number) batch.numbers = at::empty({rows}, at::kFloat);
  batch.labels = labels_of(pairs, indices);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t index = indices[static_cast<size_t>(row)];
    const EncodedPair& pair = pairs[static_cast<size_t>(index)];
    std::vector<int64_t> target = pair.target;
    if (!pair.no_eos) target.push_back(Vocabulary::eos);
    if (batch.source.dim() == 3)
      fill_frames(batch.source, row, pair, index);
    else
      fill_row(batch.source, row, pair.source);
    fill_row(batch.target, row, target);
    if (batch.numbers.defined())
      batch.numbers.data_ptr<float>()[row] = static_cast<float>(pair.number.value());
    batch.source_lengths.data_ptr<int64_t>()[row] = pair.source_length();
    batch.target_lengths.data_ptr<int64_t>()[row] = static_cast<int64_t>(target.size());
  }
  return batch;
}

}  // namespace attend
