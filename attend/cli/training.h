#pragma once

#include <string>
#include <vector>

#include "attend/cli/validation_metric.h"
#include "attend/train/trainer.h"

namespace attend {

// What `attend train` is told.
struct TrainOptions {
  std::string data, target, valid, valid_target, out, config, recipe, init;
  std::vector<std::string> assignments;
  std::string source_units, target_units;
  std::string device = "cpu";
  bool resume = false, strict = false, dump_config = false, json = false;
};

struct Trained {
  TrainOutcome outcome;
  ValidationMetric metric;  // of outcome.best_metric
};

// What would run, as a TOML document: flag > environment > file > default. Error on settings that
// do not fit.
std::string training_config(const TrainOptions& options);

// Trains a model into options.out, with progress on standard error. With options.resume what is
// there is trained further; where it was trained to its end, nothing is left to do. Error when
// another process is training there. A first SIGINT or SIGTERM saves everything and leaves with
// CLI::RuntimeError(128 + signal).
Trained train_model(const TrainOptions& options);

}  // namespace attend
