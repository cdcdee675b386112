#include "attend/train/stream_batches.h"

#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/hash.h"

namespace attend {

StreamBatches::StreamBatches(PairFiles files, Encode encode, const TrainConfig& config)
    : files_(std::move(files)), encode_(std::move(encode)), config_(config), groups_(config) {
  ExampleStream in_order({files_}, 1, 0, 0);
  Fnv1a hash;
  const auto mix = [&](std::string_view text) {
    hash.add_bytes(text);
    hash.add(0xff);  // not a byte of UTF-8
  };
  for (Example example; in_order.next(example); ++examples_) {
    mix(example.source);
    mix(example.targets[0]);
  }
  fingerprint_ = hash.value();
  begin(0);
  if (pool_.empty()) fail("{}: holds no training pairs", files_.source);
}

void StreamBatches::begin(int64_t epoch) {
  epoch_ = epoch;
  read_ = pools_ = 0;
  stream_.emplace(std::vector<PairFiles>{files_}, config_.shuffle_buffer,
                  static_cast<uint64_t>(config_.seed), epoch);
  fill();
}

void StreamBatches::fill() {
  pool_.clear();
  const int64_t before = read_;
  Example example;
  // Reads until something can be returned: done() must be 1 when nothing is left.
  while (pool_.empty() && read_ < examples_) {
    for (int64_t i = 0; i < config_.shuffle_buffer && read_ < examples_; ++i, ++read_) {
      if (!stream_->next(example))
        fail("{}: has become shorter since training began", files_.source);
      for (EncodedPair& pair : encode_(example)) pool_.push_back(std::move(pair));
    }
  }
  pool_examples_ = read_ - before;
  // The order of batches differs for each pool of each epoch.
  groups_.begin(pool_, (epoch_ << 32) + pools_++);
}

std::vector<EncodedPair> StreamBatches::next() {
  const std::vector<int64_t>& indices = groups_.next();
  std::vector<EncodedPair> batch;
  batch.reserve(indices.size());
  for (const int64_t index : indices) batch.push_back(std::move(pool_[static_cast<size_t>(index)]));
  // Batches do not cross pools, so the last batch of a pool may be small.
  if (groups_.done() == 1) fill();
  return batch;
}

double StreamBatches::done() const {
  if (pool_.empty()) return 1;
  // Examples of the current pool count in proportion to its used batches.
  const double left = 1 - groups_.done();
  return (static_cast<double>(read_) - left * static_cast<double>(pool_examples_)) /
         static_cast<double>(examples_);
}

}  // namespace attend
