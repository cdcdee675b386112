#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/stream.h"
#include "attend/train/batch_source.h"

namespace attend {

// Pairs of a file that may be larger than memory. Two buffers of train.shuffle_buffer examples are
// in memory. One shuffles the examples as the file is read (ExampleStream), the other groups them
// by length into batches.
class StreamBatches : public BatchSource {
 public:
  // Returns the pairs of an example; empty to skip it.
  using Encode = std::function<std::vector<EncodedPair>(const Example&)>;

  // Reads the file once to count its examples. Errors as ExampleStream, and if it has no examples.
  StreamBatches(PairFiles files, Encode encode, const TrainConfig& config);

  // Regroups the remaining examples of the current buffer.
  void regroup(const BatchSize& size) override { groups_.regroup(size); }
  void begin(int64_t epoch) override;
  std::vector<EncodedPair> next() override;
  double done() const override;
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  // Reads until there are pairs or the epoch ends.
  void fill();

  const PairFiles files_;
  const Encode encode_;
  const TrainConfig& config_;
  int64_t examples_ = 0;  // number in the file
  uint64_t fingerprint_ = 0;
  std::optional<ExampleStream> stream_;
  int64_t epoch_ = 0;
  int64_t read_ = 0;   // number of examples read in this epoch
  int64_t pools_ = 0;  // number of pools filled in this epoch
  int64_t pool_examples_ = 0;
  std::vector<EncodedPair> pool_;
  PairGroups groups_;  // groups of pool_
};

}  // namespace attend
