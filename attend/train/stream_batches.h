#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/stream.h"
#include "attend/train/batch_source.h"

namespace attend {

// Pairs of a file that may be larger than memory. What is in memory are two buffers of
// train.shuffle_buffer examples: one that examples are drawn from as the file goes by
// (ExampleStream), one whose examples are grouped by length into batches.
class StreamBatches : public BatchSource {
 public:
  // The pairs of an example; none where it is to be left out.
  using Encode = std::function<std::vector<EncodedPair>(const Example&)>;

  // Reads the file once, to count its examples. Errors as ExampleStream, and when it holds none.
  StreamBatches(PairFiles files, Encode encode, const TrainConfig& config);

  // Groups again what is left of the examples that are read already.
  void regroup(const BatchSize& size) override { groups_.regroup(size); }
  void begin(int64_t epoch) override;
  std::vector<EncodedPair> next() override;
  double done() const override;
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  // Reads on until there are pairs or the epoch ends.
  void fill();

  const PairFiles files_;
  const Encode encode_;
  const TrainConfig& config_;
  int64_t examples_ = 0;  // in the file
  uint64_t fingerprint_ = 0;
  std::optional<ExampleStream> stream_;
  int64_t epoch_ = 0;
  int64_t read_ = 0;   // examples of this epoch
  int64_t pools_ = 0;  // filled in this epoch
  int64_t pool_examples_ = 0;
  std::vector<EncodedPair> pool_;
  PairGroups groups_;  // of pool_
};

}  // namespace attend
