#include "attend/train/batch_source.h"

#include <algorithm>
#include <bit>

#include "attend/base/error.h"
#include "attend/base/hash.h"

namespace attend {
namespace {

// Hash of all ids, lengths and numbers, and of the sums of frames.
uint64_t hash_of(const std::vector<EncodedPair>& pairs) {
  Fnv1a hash;
  for (const EncodedPair& pair : pairs) {
    if (pair.frames.defined()) {
      hash.add(static_cast<uint64_t>(pair.frames.size(0)));
      hash.add(std::bit_cast<uint64_t>(pair.frames.sum(at::kDouble).item<double>()));
    }
    if (pair.number) hash.add(std::bit_cast<uint64_t>(*pair.number));
    for (const auto* side : {&pair.source, &pair.target}) {
      hash.add(side->size());
      for (const int64_t id : *side) hash.add(static_cast<uint64_t>(id));
    }
  }
  return hash.value();
}

}  // namespace

PairGroups::PairGroups(const TrainConfig& config)
    : seed_(static_cast<uint64_t>(config.seed)), size_(BatchSize::of(config)) {}

std::vector<std::vector<int64_t>> PairGroups::grouped(const std::vector<EncodedPair>& pairs) const {
  return size_.tokens > 0 ? batches_by_tokens(pairs, size_.tokens, seed_, order_)
                          : batches_by_length(pairs, size_.pairs, seed_, order_);
}

void PairGroups::begin(const std::vector<EncodedPair>& pairs, int64_t order) {
  pairs_ = &pairs;
  order_ = order;
  batches_ = grouped(pairs);
  place_ = 0;
  done_before_ = 0;
}

void PairGroups::regroup(const BatchSize& size) {
  if (size == size_) return;
  size_ = size;
  if (pairs_ == nullptr) return;
  done_before_ = done();
  std::vector<int64_t> left;
  for (; place_ < batches_.size(); ++place_)
    left.insert(left.end(), batches_[place_].begin(), batches_[place_].end());
  // The new order must not depend on the previous grouping.
  std::sort(left.begin(), left.end());
  std::vector<EncodedPair> pairs;
  pairs.reserve(left.size());
  for (const int64_t index : left) pairs.push_back((*pairs_)[static_cast<size_t>(index)]);
  batches_ = grouped(pairs);
  place_ = 0;
  for (auto& batch : batches_)
    for (int64_t& index : batch) index = left[static_cast<size_t>(index)];
}

double PairGroups::done() const {
  if (place_ == batches_.size()) return 1;
  const double done = static_cast<double>(place_) / static_cast<double>(batches_.size());
  return done_before_ + (1 - done_before_) * done;
}

PairBatches::PairBatches(const std::vector<EncodedPair>& pairs, const TrainConfig& config)
    : pairs_(pairs), fingerprint_(hash_of(pairs)), groups_(config) {
  if (pairs.empty()) fail("[train] got no training pairs");
}

void PairBatches::begin(int64_t epoch) { groups_.begin(pairs_, epoch); }

std::vector<EncodedPair> PairBatches::next() {
  const std::vector<int64_t>& indices = groups_.next();
  std::vector<EncodedPair> batch;
  batch.reserve(indices.size());
  for (const int64_t index : indices) batch.push_back(pairs_[static_cast<size_t>(index)]);
  return batch;
}

}  // namespace attend
