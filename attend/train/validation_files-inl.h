#pragma once

#include <optional>
#include <string>

#include "attend/train/checkpoint.h"
#include "attend/train/event_file.h"
#include "attend/train/metrics_log.h"
#include "attend/train/recent_weights.h"
#include "attend/train/train_progress.h"
#include "attend/train/trainer.h"

namespace attend::internal {

// Files that validations write to the folder of a training: metrics.jsonl, TensorBoard events and
// the weights of train.keep_checkpoints.
class ValidationFiles {
 public:
  // `task` must outlive this object.
  ValidationFiles(const TrainConfig& config, const TrainTask& task)
      : task_(task),
        log_(task.folder + "/metrics.jsonl"),
        kept_(task.folder, config.keep_checkpoints) {}

  // Removes everything after a step, at which a resumed training begins.
  void forget_after(int64_t step) const;
  // Begins an event file after a step.
  void begin_events(int64_t step);
  // Records the validation in `progress` of the averaged weights.
  void add(const TrainProgress& progress, const Checkpoint& state);

 private:
  const TrainTask& task_;
  MetricsLog log_;
  RecentWeights kept_;
  std::optional<EventFile> events_;
};

}  // namespace attend::internal
