#pragma once

#include <string>
#include <vector>

#include "attend/train/batch_source.h"
#include "attend/train/checkpoint.h"

namespace attend::internal {

// The place of a training in its data, which the checkpoint's epoch and handed_out tell.
class DataPlace {
 public:
  // All must outlive this.
  DataPlace(BatchSource& source, const TrainConfig& config, Checkpoint& state)
      : source_(source),
        size_(BatchSize::of(config)),
        accumulate_(config.accumulate),
        state_(state) {}

  // Goes to the place that the state tells, by batches of the sizes that they had. Error, naming
  // the checkpoint at `path`, where the epoch has fewer batches.
  void find(const std::string& path);

  // The batches of the next step: train.accumulate of them, fewer at the end of the epoch.
  std::vector<std::vector<EncodedPair>> next_batches();
  // Begins the next epoch in the state where this one's batches have been handed out.
  void end_step();

  // The share of the epoch whose batches were handed out.
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
