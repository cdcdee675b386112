#include "attend/train/window_batches.h"

#include <algorithm>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/hash.h"

namespace attend {

WindowBatches::WindowBatches(std::vector<int64_t> text, int64_t length, const TrainConfig& config)
    : text_(std::move(text)),
      length_(length),
      seed_(static_cast<uint64_t>(config.seed)),
      size_(BatchSize::of(config)) {
  if (text_.empty()) fail("[train] the training text is empty");
  Fnv1a hash;
  for (const int64_t id : text_) hash.add(static_cast<uint64_t>(id));
  fingerprint_ = hash.value();
}

void WindowBatches::begin(int64_t epoch) {
  windows_ = shuffled_windows(static_cast<int64_t>(text_.size()), length_, seed_, epoch);
  place_ = 0;
}

std::vector<EncodedPair> WindowBatches::next() {
  const int64_t size = size_.tokens > 0 ? size_.tokens / length_ : size_.pairs;
  const size_t end =
      std::min(windows_.size(), place_ + static_cast<size_t>(std::max<int64_t>(size, 1)));
  std::vector<EncodedPair> batch;
  batch.reserve(end - place_);
  for (; place_ < end; ++place_) batch.push_back(window_pair(text_, windows_[place_], 0));
  return batch;
}

double WindowBatches::done() const {
  return static_cast<double>(place_) / static_cast<double>(windows_.size());
}

}  // namespace attend
