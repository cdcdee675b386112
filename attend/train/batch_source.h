#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"
#include "attend/train/train_config.h"

namespace attend {

// Size of a batch: train.batch pairs, or pairs of at most train.batch_tokens tokens.
struct BatchSize {
  int64_t pairs = 0;
  int64_t tokens = 0;

  static BatchSize of(const TrainConfig& config) { return {config.batch, config.batch_tokens}; }
  bool operator==(const BatchSize&) const = default;
};

// Consecutive batches of one size.
struct BatchRun {
  BatchSize size;
  int64_t batches = 0;
};

// Training data, one batch at a time. The batches of an epoch and their order depend only on the
// data, the seed, the number of the epoch and the batch sizes. The epoch and the runs of batches so
// far therefore identify a position.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Sets the size of the next batches; initially the size of the configuration. Regroups the rest
  // of the epoch; each example still occurs once.
  virtual void regroup(const BatchSize& size) = 0;

  // Moves to the beginning of an epoch, counted from 0.
  virtual void begin(int64_t epoch) = 0;

  // Returns the next batch, at least one pair. Requires done() < 1.
  virtual std::vector<EncodedPair> next() = 0;

  // Share of the epoch that next() has returned; exactly 1 at the end.
  virtual double done() const = 0;

  // Hash of the data; a position is valid only for data with the same hash.
  virtual uint64_t fingerprint() const = 0;
};

// Groups pairs by length into batches; each pair occurs once.
class PairGroups {
 public:
  explicit PairGroups(const TrainConfig& config);

  // Groups the pairs, in an order that depends only on train.seed and `order`. `pairs` must outlive
  // this object.
  void begin(const std::vector<EncodedPair>& pairs, int64_t order);
  // Regroups the remaining pairs.
  void regroup(const BatchSize& size);

  // Returns the pair indices of the next batch. Requires done() < 1.
  const std::vector<int64_t>& next() { return batches_[place_++]; }
  // Share of the pairs that next() has returned; exactly 1 at the end.
  double done() const;

 private:
  std::vector<std::vector<int64_t>> grouped(const std::vector<EncodedPair>& pairs) const;

  const uint64_t seed_;
  BatchSize size_;
  int64_t order_ = 0;
  const std::vector<EncodedPair>* pairs_ = nullptr;
  std::vector<std::vector<int64_t>> batches_;
  size_t place_ = 0;
  double done_before_ = 0;  // done() at the last regrouping
};

// Pairs in memory, grouped by length.
class PairBatches : public BatchSource {
 public:
  // Error if `pairs` is empty. `pairs` must outlive this object.
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
