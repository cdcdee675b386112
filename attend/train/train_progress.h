#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attend {

struct Validation {
  double loss = 0;    // a target token, in nats
  double metric = 0;  // what TrainTask::metric names
};

// The progress of training, reported after every step.
struct TrainProgress {
  int64_t step = 0;      // steps done
  int64_t steps = 0;     // in all, about
  int64_t epoch = 0;     // from 1
  double loss = 0;       // objective per target token since the last validation
  double step_loss = 0;  // the same of this step
  double rate = 0;       // learning rate of the step
  double pairs_per_second = 0;
  double seconds = 0;                    // spent training, over all runs
  double remaining = 0;                  // seconds, estimated
  std::optional<Validation> validation;  // after a validation
  bool best = false;                     // it was the best so far
  bool equals_best = false;  // its metric was that of the best before; the lower loss is better
  // What went wrong, one line: a step that was skipped, a return to a checkpoint, a validation
  // without figures, weights of processes that differed.
  std::string trouble;
};

struct TrainOutcome {
  bool interrupted = false;  // by TrainTask::stop; otherwise trained to its end
  std::string ended_by;      // the setting that ended it, "train.patience"; empty: none
  double limit = 0;          // the value of that setting
  int64_t steps = 0;
  int64_t steps_before = 0;  // of them, those of earlier runs
  int64_t skipped = 0;       // of them, those without a finite loss or gradient
  int64_t rollbacks = 0;     // returns to a checkpoint
  double best_metric = 0;
  double seconds = 0;
  int64_t left_out = 0;  // lines, images and sounds that could not be read
};

}  // namespace attend
