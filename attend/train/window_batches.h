#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/text_windows.h"
#include "attend/train/batch_source.h"

namespace attend {

// A text in memory, cut at different positions in each epoch; a pair is one window.
class WindowBatches : public BatchSource {
 public:
  // Windows of `length` tokens. Error if the text is empty.
  WindowBatches(std::vector<int64_t> text, int64_t length, const TrainConfig& config);

  void regroup(const BatchSize& size) override { size_ = size; }
  void begin(int64_t epoch) override;
  std::vector<EncodedPair> next() override;
  double done() const override;
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  const std::vector<int64_t> text_;
  const int64_t length_;
  const uint64_t seed_;
  BatchSize size_;
  uint64_t fingerprint_ = 0;
  std::vector<TextWindow> windows_;
  size_t place_ = 0;
};

}  // namespace attend
