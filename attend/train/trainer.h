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

// Seconds since an arbitrary fixed time.
double steady_seconds();

struct TrainTask {
  std::vector<ModulePtr> replicas;  // equal modules; training starts from the weights of
                                    // replicas[0]
  ModulePtr averaged;  // an equal module; holds the averaged weights that are validated and saved
  BatchSource* source = nullptr;
  // The training objective of a batch, summed over its target tokens: a scalar. The function and
  // its backward must not call the world, except with train.sequence_parallel.
  std::function<at::Tensor(int64_t replica, const Batch&, const Pass&)> objective;
  // Validates `averaged`. Every process calls it, and the result of rank 0 is used.
  std::function<Validation()> validate;
  // Hash of the validation examples; 0: unknown.
  uint64_t validation_fingerprint = 0;
  std::string metric = "metric";  // name of Validation::metric
  bool higher_is_better = false;
  std::function<void(const TrainProgress&)> report;
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  std::function<double()> now = steady_seconds;  // monotonic clock
  const std::atomic<bool>* stop = nullptr;       // set from outside to save and stop
  Communicator* world = nullptr;  // the processes that train together; null: only this process
  std::string folder;             // for checkpoint, metrics and weights
  std::string event_folder;       // for TensorBoard event files; empty: no event files
};

// Trains with Adam on the sum of the replicas' gradients, averages weights (Polyak & Juditsky 1992)
// and validates after every epoch or every train.validate_steps steps. It writes
// folder/weights.safetensors (best averaged weights) and folder/weights-STEP.safetensors (weights
// of the last train.keep_checkpoints validations). It also writes folder/checkpoint.safetensors
// (all state), folder/metrics.jsonl (one JSON object per validation) and TensorBoard events in
// task.event_folder.
//
// With `resume`, training continues from the checkpoint, if there is one. Results are then
// bit-identical to an uninterrupted training with the same build and replicas. An exception is
// train.minutes, because rates depend on the clock.
//
// Settings that differ from the checkpoint's apply from there on. With other numbers of processes
// or replicas, training uses the same examples, but is not bit-identical, and warns. With another
// train.batch or train.batch_tokens, the rest of the epoch has batches of the new size. With
// another metric or other validation data, the search for the best weights restarts with a warning.
// Error for another train.seed or train.shuffle_buffer.
//
// Among validations with equal metric, the one with the lowest loss is the best. train.patience
// counts validations without a new best.
//
// Several processes (task.world) train as one, with the replicas of all; each computes its share of
// every batch. Data and settings must be equal. Only rank 0 reads and writes the folder. If weights
// differ at a validation, for example because of different processors, all processes take the
// weights of rank 0 and report this. A stop in any process stops all.
//
// A step with a loss or gradient that is not finite changes nothing; a due validation waits for the
// next finite step. After 10 such steps in a row, training returns to the last checkpoint with half
// the rate, at most train.rollbacks times. The step of that checkpoint depends on the clock. If
// training still diverges, throws an Error that names a tensor that is not finite; the checkpoint
// is kept. A metric that is not finite does not count as an improvement.
//
// Error also if training ends without weights from a validation, or if data or model do not match
// the checkpoint. Error if a file cannot be written, or if the configuration has values that
// settings files do not allow.
TrainOutcome train_network(const TrainConfig& config, const TrainTask& task, bool resume);

}  // namespace attend
