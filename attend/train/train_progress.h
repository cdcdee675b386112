#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attend {

struct Validation {
  double loss = 0;    // per target token, in nats
  double metric = 0;  // value of TrainTask::metric
};

// The progress of training, reported after every step.
struct TrainProgress {
  int64_t step = 0;      // number of steps done
  int64_t steps = 0;     // approximate total
  int64_t epoch = 0;     // from 1
  double loss = 0;       // objective per target token since the last validation
  double step_loss = 0;  // objective per target token of this step
  double rate = 0;       // learning rate of the step
  double pairs_per_second = 0;
  double seconds = 0;                    // training time over all runs
  double remaining = 0;                  // seconds, estimated
  std::optional<Validation> validation;  // set after a validation
  bool best = false;                     // the validation is the best so far
  bool equals_best = false;  // its metric equals the previous best; the lower loss is then better
  // Warning, one line: a skipped step, a return to a checkpoint, a validation without a finite
  // metric, or different weights in processes.
  std::string trouble;
};

struct TrainOutcome {
  bool interrupted = false;  // stopped by TrainTask::stop; otherwise trained to the end
  std::string ended_by;      // the setting that ended it, such as "train.patience"; may be empty
  double limit = 0;          // the value of that setting
  int64_t steps = 0;
  int64_t steps_before = 0;  // number of steps of earlier runs
  int64_t skipped = 0;       // number of steps without a finite loss or gradient
  int64_t rollbacks = 0;     // returns to a checkpoint
  double best_metric = 0;
  double seconds = 0;
  int64_t left_out = 0;  // unreadable lines, images and sounds
};

}  // namespace attend
