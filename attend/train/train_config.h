#pragma once

#include <cstdint>

#include "attend/base/settings.h"

namespace attend {

struct TrainConfig {
  int64_t seed = 1;
  int64_t epochs = 20;
  double minutes = 0;    // stop after so long; 0: no limit
  int64_t batch = 128;   // pairs a step, shared out over the replicas
  int64_t replicas = 2;  // copies of the model that work in parallel
  double learning_rate = 2e-3;
  double final_rate = 0.02;  // share of learning_rate that the linear decay ends at
  int64_t warmup_steps = 200;
  double label_smoothing = 0.1;
  double clip_norm = 1.0;
  double weight_average = 0.999;  // decay of the moving average that is saved; 0: the last weights
  int64_t patience = 5;           // validations without improvement before stopping; 0: never
  int64_t validation_examples = 2000;
  double checkpoint_seconds = 30;

  Settings settings();  // keys train.*
};

// The rate of step `step` of `steps`: rises linearly through the warm-up, then falls linearly to
// final_rate * learning_rate.
double learning_rate_at(const TrainConfig& config, int64_t step, int64_t steps);

}  // namespace attend
