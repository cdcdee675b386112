#pragma once

#include <optional>
#include <string>

#include "attend/train/checkpoint.h"
#include "attend/train/event_file.h"
#include "attend/train/kept_weights.h"
#include "attend/train/metrics_log.h"
#include "attend/train/train_progress.h"
#include "attend/train/trainer.h"

namespace attend::internal {

// What validations leave in the folder of a training: a line of metrics.jsonl, events of
// TensorBoard and the weights that train.keep_checkpoints asks for.
class ValidationFiles {
 public:
  // `task` must outlive this.
  ValidationFiles(const TrainConfig& config, const TrainTask& task)
      : task_(task),
        log_(task.folder + "/metrics.jsonl"),
        kept_(task.folder, config.keep_checkpoints) {}

  // Removes everything after a step, where a training that continues an earlier one begins.
  void forget_after(int64_t step) const;
  // Begins a file of events behind a step.
  void begin_events(int64_t step);
  // Adds a validation, which `progress` has, of the averaged weights.
  void add(const TrainProgress& progress, const Checkpoint& state);

 private:
  const TrainTask& task_;
  MetricsLog log_;
  KeptWeights kept_;
  std::optional<EventFile> events_;
};

}  // namespace attend::internal
