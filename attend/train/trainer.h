#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "attend/data/batches.h"
#include "attend/nn/pass.h"
#include "attend/parallel/communicator.h"
#include "attend/train/batch_source.h"
#include "attend/train/flat_parameters.h"
#include "attend/train/train_config.h"
#include "attend/train/train_progress.h"

namespace attend {

// Seconds since some moment before the program.
double steady_seconds();

struct TrainTask {
  std::vector<ModulePtr> replicas;  // alike; their first weights are those of replicas[0]
  ModulePtr averaged;               // alike; holds the weights that are validated and saved
  BatchSource* source = nullptr;
  // The training objective of a batch, summed over its target tokens: a scalar. Neither it nor its
  // backward may call the world, but with train.sequence_parallel.
  std::function<at::Tensor(int64_t replica, const Batch&, const Pass&)> objective;
  // Validates `averaged`. Every process calls it, and the result of rank 0 counts.
  std::function<Validation()> validate;
  // Identifies the examples that it validates on. 0: not known.
  uint64_t validation_fingerprint = 0;
  std::string metric = "metric";  // the name of Validation::metric
  bool higher_is_better = false;
  std::function<void(const TrainProgress&)> report;
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  std::function<double()> now = steady_seconds;  // the clock, which never goes back
  const std::atomic<bool>* stop = nullptr;       // set from outside to save and return
  Communicator* world = nullptr;                 // the processes that train together; null: one
  std::string folder;                            // where checkpoint, metrics and weights go
  std::string event_folder;                      // where TensorBoard event files go; empty: none
};

// Trains with Adam by the sum of the replicas' gradients, averages weights (Polyak & Juditsky
// 1992), validates after every epoch or train.validate_steps, keeps the best averaged weights in
// folder/weights.safetensors, the last train.keep_checkpoints in folder/weights-STEP.safetensors,
// all state in folder/checkpoint.safetensors and one JSON object per validation in
// folder/metrics.jsonl and, for TensorBoard, in task.event_folder. With `resume` it continues from
// the checkpoint, if there is one, bitwise as if it had not stopped or been killed (same build,
// same replicas), except with train.minutes, whose rates follow the clock.
//
// Settings that differ from the checkpoint's hold from there on. With other numbers of processes or
// replicas it continues with the same examples, but not to the same bits, and says so. With another
// train.batch or train.batch_tokens, the rest of the epoch has batches of the new size; with
// another metric or other validation data, the search for the best weights starts anew, and it says
// so. Error on another train.seed or train.shuffle_buffer.
//
// Among validations of equal metric the one with the lower loss is the best; train.patience counts
// validations without a better metric.
//
// Several processes, task.world, train as one with the replicas of all: each takes its share of
// every batch. Their data and settings must be the same. Only rank 0 reads and writes the folder.
// Where weights differ at a validation, as different processors may make them, all take those of
// rank 0, and `report` is told. A stop in any of them ends all.
//
// A step whose loss or gradient is not finite changes nothing, and a validation that falls on it
// waits for a finite step. After 10 in a row training returns to the last checkpoint, with half the
// rate, at most train.rollbacks times: where that lies depends on the clock. Error when it still
// diverges, naming a tensor that is not finite; the checkpoint stays. A validation whose figure is
// not a number is no improvement. Error also when a training ends and no validation had weights to
// keep, when data or model are not those of the checkpoint, when a file cannot be written, and on a
// configuration with values that a file of settings may not have.
TrainOutcome train_network(const TrainConfig& config, const TrainTask& task, bool resume);

}  // namespace attend
