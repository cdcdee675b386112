#include "attend/train/train_config.h"

#include <algorithm>

namespace attend {

Settings TrainConfig::settings() {
  return {
      {"train.seed", &seed, "seed of the initial weights, the order and the dropout", 0, 1e15},
      {"train.epochs", &epochs, "passes over the training data", 1, 1e6},
      {"train.minutes", &minutes, "stop after so many minutes; 0: no limit", 0, 1e6},
      {"train.batch", &batch, "pairs a step, shared out over the replicas", 1, 1e6},
      {"train.replicas", &replicas, "copies of the model that work in parallel", 1, 256},
      {"train.learning_rate", &learning_rate, "peak rate of Adam", 1e-9, 10},
      {"train.final_rate", &final_rate, "share of the peak rate that decay ends at", 0, 1},
      {"train.warmup_steps", &warmup_steps, "steps in which the rate rises", 0, 1e9},
      {"train.label_smoothing", &label_smoothing, "probability spread over all symbols", 0, 0.9},
      {"train.clip_norm", &clip_norm, "longest gradient; longer ones are scaled", 1e-6, 1e9},
      {"train.weight_average", &weight_average,
       "decay of the moving average of the weights that is validated and saved; 0: none", 0,
       0.999999},
      {"train.patience", &patience, "validations without improvement before stopping; 0: never", 0,
       1e6},
      {"train.validation_examples", &validation_examples, "examples decoded at each validation", 1,
       1e9},
      {"train.checkpoint_seconds", &checkpoint_seconds, "seconds between checkpoints", 0, 1e6},
  };
}

double learning_rate_at(const TrainConfig& config, int64_t step, int64_t steps) {
  const auto now = static_cast<double>(step + 1);
  const auto warmup = static_cast<double>(config.warmup_steps);
  if (now < warmup) return config.learning_rate * now / warmup;
  const double decay_steps = std::max(1.0, static_cast<double>(steps) - warmup);
  const double left = std::clamp(1 - (now - warmup) / decay_steps, 0.0, 1.0);
  return config.learning_rate * (config.final_rate + (1 - config.final_rate) * left);
}

}  // namespace attend
