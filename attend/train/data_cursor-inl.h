#pragma once

#include <string>
#include <vector>

#include "attend/train/batch_source.h"
#include "attend/train/checkpoint.h"

namespace attend::internal {

// The position of a training in its data, according to the checkpoint's epoch and handed_out.
class DataCursor {
 public:
  // All arguments must outlive this object.
  DataCursor(BatchSource& source, const TrainConfig& config, Checkpoint& state)
      : source_(source),
        size_(BatchSize::of(config)),
        accumulate_(config.accumulate),
        state_(state) {}

  // Moves the source to the position of the state, with batches of the original sizes. Error,
  // naming the checkpoint at `path`, if the epoch has fewer batches.
  void find(const std::string& path);

  // Batches of the next step: train.accumulate batches, fewer at the end of an epoch.
  std::vector<std::vector<EncodedPair>> next_batches();
  // Updates the state after a step; begins the next epoch if all batches of this one were used.
  void end_step();

  // Share of the epoch that was used in steps.
  double within_epoch() const { return state_.handed_out.empty() ? 0 : source_.done(); }
  int64_t pairs_done() const { return pairs_done_; }  // in this run
  const BatchSize& size() const { return size_; }

 private:
  BatchSource& source_;
  const BatchSize size_;
  const int64_t accumulate_;
  Checkpoint& state_;
  int64_t pairs_done_ = 0;
};

}  // namespace attend::internal
