#include "attend/train/batch_source.h"

#include <bit>

#include "attend/base/error.h"

namespace attend {
namespace {

// FNV-1a over all ids and lengths, and the sums of frames.
uint64_t hash_of(const std::vector<EncodedPair>& pairs) {
  uint64_t hash = 14695981039346656037ULL;
  const auto mix = [&](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211ULL;
  };
  for (const EncodedPair& pair : pairs) {
    if (pair.frames.defined()) {
      mix(pair.frames.size(0));
      mix(std::bit_cast<int64_t>(pair.frames.sum(at::kDouble).item<double>()));
    }
    for (const auto* side : {&pair.source, &pair.target}) {
      mix(static_cast<int64_t>(side->size()));
      for (const int64_t id : *side) mix(id);
    }
  }
  return hash;
}

}  // namespace

PairBatches::PairBatches(const std::vector<EncodedPair>& pairs, const TrainConfig& config)
    : pairs_(pairs), config_(config), fingerprint_(hash_of(pairs)) {
  if (pairs.empty()) fail("[train] there are no training pairs");
}

void PairBatches::begin(int64_t epoch) {
  const auto seed = static_cast<uint64_t>(config_.seed);
  batches_ = config_.batch_tokens > 0 ? batches_by_tokens(pairs_, config_.batch_tokens, seed, epoch)
                                      : batches_by_length(pairs_, config_.batch, seed, epoch);
  place_ = 0;
}

std::vector<EncodedPair> PairBatches::next() {
  std::vector<EncodedPair> batch;
  batch.reserve(batches_[place_].size());
  for (const int64_t index : batches_[place_++])
    batch.push_back(pairs_[static_cast<size_t>(index)]);
  return batch;
}

double PairBatches::done() const {
  return static_cast<double>(place_) / static_cast<double>(batches_.size());
}

}  // namespace attend
