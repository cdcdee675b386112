#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"
#include "attend/train/train_config.h"

namespace attend {

// Training data, a batch at a time. What an epoch holds, and in what order, is a function of the
// data, the seed and the epoch's number alone, so that a place is (epoch, batches handed out).
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Goes to the beginning of an epoch, counted from 0.
  virtual void begin(int64_t epoch) = 0;

  // The next batch, at least one pair; only where done() < 1.
  virtual std::vector<EncodedPair> next() = 0;

  // The share of the epoch that has been handed out: exactly 1 at its end.
  virtual double done() const = 0;

  // Differs for other data, where a place would mean something else.
  virtual uint64_t fingerprint() const = 0;
};

// Pairs in memory, grouped by length: train.batch of them, or as many as train.batch_tokens allows.
class PairBatches : public BatchSource {
 public:
  // Error when there are no pairs. Both must outlive this.
  PairBatches(const std::vector<EncodedPair>& pairs, const TrainConfig& config);

  void begin(int64_t epoch) override;
  std::vector<EncodedPair> next() override;
  double done() const override;
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  const std::vector<EncodedPair>& pairs_;
  const TrainConfig& config_;
  const uint64_t fingerprint_;
  std::vector<std::vector<int64_t>> batches_;
  size_t place_ = 0;
};

}  // namespace attend
