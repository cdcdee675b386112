#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"
#include "attend/train/train_config.h"

namespace attend {

// How large batches are: train.batch pairs, or as many as have train.batch_tokens tokens.
struct BatchSize {
  int64_t pairs = 0;
  int64_t tokens = 0;

  static BatchSize of(const TrainConfig& config) { return {config.batch, config.batch_tokens}; }
  bool operator==(const BatchSize&) const = default;
};

// Batches of one size, handed out one after the other.
struct BatchRun {
  BatchSize size;
  int64_t batches = 0;
};

// Training data, a batch at a time. The batches of an epoch and their order are a function of the
// data, the seed, the epoch's number and the sizes of its batches alone, so that a place is the
// epoch and the runs of batches that were handed out.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Sets the size of the batches that follow; at first it is that of the configuration. The rest of
  // the epoch is grouped again, so that each example is still handed out once.
  virtual void regroup(const BatchSize& size) = 0;

  // Goes to the beginning of an epoch, counted from 0.
  virtual void begin(int64_t epoch) = 0;

  // The next batch, at least one pair; only where done() < 1.
  virtual std::vector<EncodedPair> next() = 0;

  // The share of the epoch that has been handed out: exactly 1 at its end.
  virtual double done() const = 0;

  // Differs for other data, where a place would mean something else.
  virtual uint64_t fingerprint() const = 0;
};

// Pairs grouped by length into batches; each pair is handed out once.
class PairGroups {
 public:
  explicit PairGroups(const TrainConfig& config);

  // Groups the pairs, in an order that is a function of train.seed and `order`. They must outlive
  // this.
  void begin(const std::vector<EncodedPair>& pairs, int64_t order);
  // Groups again the pairs that are left.
  void regroup(const BatchSize& size);

  // Indices of the pairs of the next batch; only where done() < 1.
  const std::vector<int64_t>& next() { return batches_[place_++]; }
  // The share of the batches that was handed out: exactly 1 at the end.
  double done() const;

 private:
  std::vector<std::vector<int64_t>> grouped(const std::vector<EncodedPair>& pairs) const;

  const uint64_t seed_;
  BatchSize size_;
  int64_t order_ = 0;
  const std::vector<EncodedPair>* pairs_ = nullptr;
  std::vector<std::vector<int64_t>> batches_;
  size_t place_ = 0;
  double done_before_ = 0;  // done() when the pairs were grouped last
};

// Pairs in memory, grouped by length.
class PairBatches : public BatchSource {
 public:
  // Error when there are no pairs, which must outlive this.
  PairBatches(const std::vector<EncodedPair>& pairs, const TrainConfig& config);

  void regroup(const BatchSize& size) override { groups_.regroup(size); }
  void begin(int64_t epoch) override;
  std::vector<EncodedPair> next() override;
  double done() const override { return groups_.done(); }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  const std::vector<EncodedPair>& pairs_;
  const uint64_t fingerprint_;
  PairGroups groups_;
};

}  // namespace attend
