#include "attend/train/train_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attend/base/hash.h"
#include "attend/metrics/metric.h"

namespace attend {
namespace {

// Factor of the rate after the warm-up; `warmup` is at least 1.
double decayed(const TrainConfig& config, double now, double warmup, double steps) {
  const double done = std::clamp((now - warmup) / std::max(1.0, steps - warmup), 0.0, 1.0);
  double left = 1 - done;
  switch (config.schedule) {
    case Schedule::constant:
    case Schedule::plateau:
      return 1;
    case Schedule::inverse_sqrt:
      return std::sqrt(warmup / now);
    case Schedule::cosine:
      left = (1 + std::cos(std::numbers::pi * done)) / 2;
      break;
    case Schedule::linear:
      break;
  }
  return config.final_rate + (1 - config.final_rate) * left;
}

Settings amount_settings(TrainConfig& config) {
  return {
      {"train.seed", &config.seed,
       "random seed of the initial weights, the order of the data and dropout", 0, 1e15},
      {"train.epochs", &config.epochs,
       "number of passes over the training data; 0: by the size of the data", 0, 1e6},
      {"train.steps", &config.steps, "maximum number of steps; 0: no limit", 0, 1e12},
      {"train.minutes", &config.minutes,
       "maximum training time in minutes; the schedule decays over it, and runs are not "
       "reproducible to the bit; 0: no limit",
       0, 1e6},
      {"train.batch", &config.batch,
       "number of pairs per batch, over all replicas; 0: by the size of the data", 0, 1e6},
      {"train.batch_tokens", &config.batch_tokens,
       "maximum number of source and target tokens per batch, with padding, instead of "
       "train.batch; 0: off",
       0, 1e9},
      {"train.shuffle_buffer", &config.shuffle_buffer,
       "number of examples to shuffle at a time while streaming the training file; 0: keep all in "
       "memory",
       0, 1e9},
      {"train.accumulate", &config.accumulate,
       "number of batches per step; their gradients are summed", 1, 1e6},
      {"train.replicas", &config.replicas, "number of copies of the model that train in parallel",
       1, 256},
      {"train.sequence_parallel", &config.sequence_parallel,
       "whether processes share the positions of each sequence, not the pairs of a batch, for "
       "sequences too long for one process; needs train.replicas = 1"},
      {"train.precision", &config.precision,
       "type of the factors of large products; weights and sums are always float32. auto: bfloat16 "
       "if the processor multiplies it natively"},
  };
}

Settings optimiser_settings(TrainConfig& config) {
  return {
      {"train.schedule", &config.schedule, "decay of the learning rate after the warm-up"},
      {"train.learning_rate", &config.learning_rate, "peak rate of Adam", 1e-9, 10},
      {"train.final_rate", &config.final_rate,
       "final rate of linear and cosine as a share of the peak rate", 0, 1},
      {"train.warmup_steps", &config.warmup_steps,
       "number of steps in which the rate rises; -1: by the size of the data, at most a tenth of "
       "the training",
       -1, 1e9},
      {"train.plateau_factor", &config.plateau_factor,
       "schedule plateau: factor of each decrease of the rate", 1e-3, 1},
      {"train.plateau_patience", &config.plateau_patience,
       "schedule plateau: number of validations without improvement before a decrease", 1, 1e6},
      {"train.beta1", &config.beta1, "decay of Adam's mean of the gradients", 0, 0.999999},
      {"train.beta2", &config.beta2, "decay of Adam's mean of the squared gradients", 0, 0.999999},
      {"train.epsilon", &config.epsilon,
       "number added to the root of Adam's mean of the squared gradients", 1e-16, 1},
      {"train.weight_decay", &config.weight_decay,
       "decoupled weight decay, as in AdamW; not for biases and norms", 0, 10},
      {"train.l2", &config.l2,
       "L2 penalty: share of the weights added to their gradient, before Adam's scaling; not for "
       "biases and norms",
       0, 10},
      {"train.label_smoothing", &config.label_smoothing,
       "probability spread over all possible tokens", 0, 0.9},
      {"train.clip_norm", &config.clip_norm, "maximum norm of the gradient; larger ones are scaled",
       1e-6, 1e9},
      {"train.weight_average", &config.weight_average,
       "decay of a moving average of the weights, which is validated and saved; 0: no average", 0,
       0.999999},
      {"train.rollbacks", &config.rollbacks,
       "number of returns to the last checkpoint, at half the rate, before a diverging training "
       "stops",
       0, 1000},
  };
}

// A name with a number, such as hit@K, is allowed with any number.
std::vector<std::string> validation_metrics() {
  std::vector<std::string> names = metric_names(&Metric::of_validation);
  for (const std::string& name : numbered_metric_names()) names.push_back(name);
  return names;
}

Settings validation_settings(TrainConfig& config) {
  return {
      {"train.metric",
       &config.metric,
       "metric that chooses the best weights",
       {},
       {},
       validation_metrics()},
      {"train.patience", &config.patience,
       "number of validations after the warm-up without improvement before stopping; 0: never; -1: "
       "by the size of the data, the validations of 250 steps, at least 5",
       -1, 1e6},
      {"train.validate_steps", &config.validate_steps,
       "number of steps between validations; 0: after every epoch", 0, 1e9},
      {"train.validation_examples", &config.validation_examples,
       "number of examples to decode at each validation, spread over all of them", 1, 1e9},
      {"train.keep_checkpoints", &config.keep_checkpoints,
       "number of last validated weights to keep for attend average", 0, 1000},
      {"train.checkpoint_seconds", &config.checkpoint_seconds, "seconds between checkpoints", 0,
       1e6},
      {"train.tensorboard", &config.tensorboard,
       "folder of TensorBoard event files; empty: the model folder; none: no files"},
  };
}

}  // namespace

Settings TrainConfig::settings() {
  Settings all = amount_settings(*this);
  for (auto* part : {optimiser_settings, validation_settings}) append(all, part(*this));
  return all;
}

uint64_t noise_seed(int64_t seed, int64_t step, int64_t replica) {
  // Steps are 256 seeds apart; higher replicas use a separate multiplier. The sum is hashed.
  const auto step_part = static_cast<uint64_t>(step), replica_part = static_cast<uint64_t>(replica);
  const uint64_t state = static_cast<uint64_t>(seed) * split_mix_step + step_part * 256 +
                         replica_part % 256 + replica_part / 256 * 0xd6e8feb86659fd93ULL;
  return split_mix(state) >> 32;
}

double learning_rate_at(const TrainConfig& config, int64_t step, double steps) {
  const auto now = static_cast<double>(step + 1);
  const double warmup = std::max(1.0, static_cast<double>(config.warmup_steps));
  if (now < warmup) return config.learning_rate * now / warmup;
  return config.learning_rate * decayed(config, now, warmup, steps);
}

}  // namespace attend
