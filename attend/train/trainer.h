#pragma once

#include <torch/torch.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/batches.h"
#include "attend/nn/dropout.h"
#include "attend/train/batch_source.h"
#include "attend/train/flat_parameters.h"
#include "attend/train/train_config.h"

namespace attend {

struct Validation {
  double loss = 0;    // a target token, in nats
  double metric = 0;  // what task.metric names
};

// Where training stands, told after every step.
struct TrainProgress {
  int64_t step = 0;      // steps done
  int64_t steps = 0;     // in all, about
  int64_t epoch = 0;     // from 1
  double loss = 0;       // objective a target token since the last validation
  double step_loss = 0;  // the same of this step
  double rate = 0;       // learning rate of the step
  double pairs_per_second = 0;
  double seconds = 0;                    // spent training, over all runs
  double remaining = 0;                  // seconds, estimated
  std::optional<Validation> validation;  // after a validation
  bool best = false;                     // it was the best so far
  std::string trouble;  // a step that was skipped, a return to a checkpoint: one line
};

struct TrainTask {
  std::vector<ModulePtr> replicas;  // alike; their first weights are those of replicas[0]
  ModulePtr averaged;               // alike; holds the weights that are validated and saved
  BatchSource* source = nullptr;
  // The training objective of a batch, summed over its target tokens: a scalar.
  std::function<at::Tensor(int64_t replica, const Batch&, const DropoutGenerator&)> objective;
  std::function<Validation()> validate;  // of `averaged`
  std::string metric = "metric";         // the name of Validation::metric
  bool higher_is_better = false;
  std::function<void(const TrainProgress&)> report;
  const std::atomic<bool>* stop = nullptr;  // set from outside to save and return
  std::string folder;                       // where checkpoint, metrics and weights go
  std::string event_folder;                 // where TensorBoard event files go; empty: none
};

struct TrainOutcome {
  bool interrupted = false;  // by task.stop; otherwise trained to its end
  int64_t steps = 0;
  int64_t skipped = 0;    // of them, those without a finite loss or gradient
  int64_t rollbacks = 0;  // returns to a checkpoint
  double best_metric = 0;
  double seconds = 0;
};

// Trains with Adam by the sum of the replicas' gradients, averages weights (Polyak & Juditsky
// 1992), validates after every epoch or train.validate_steps, keeps the best averaged weights in
// folder/weights.safetensors, the last train.keep_checkpoints in folder/weights-STEP.safetensors,
// all state in folder/checkpoint.safetensors and one JSON object a validation in
// folder/metrics.jsonl and, for TensorBoard, in task.event_folder. With `resume` it continues from
// the checkpoint, if there is one, bitwise as if it had not stopped or been killed (same build,
// same replicas), except with train.minutes, whose rates follow the clock.
//
// Settings that differ from the checkpoint's hold from there on. With another train.batch or
// train.batch_tokens, what is left of the epoch comes in batches of the new size; with another
// metric, the best weights are sought anew. Error on another train.seed or train.shuffle_buffer.
//
// A step whose loss or gradient is not finite changes nothing, and a validation that falls on it
// waits for a finite step. After 10 in a row training returns to the last checkpoint, with half the
// rate, at most train.rollbacks times: where that lies depends on the clock. Error when it still
// diverges, naming a tensor that is not finite; the checkpoint stays. Error also when data or model
// are not those of the checkpoint, or when a file cannot be written.
TrainOutcome train_network(const TrainConfig& config, const TrainTask& task, bool resume);

}  // namespace attend
