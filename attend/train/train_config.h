#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attend/base/settings.h"

namespace attend {

// Type of the factors of large products; automatic: bfloat16 if all processors support it.
enum class Precision { automatic, float32, bfloat16 };
inline EnumNames names_of(Precision) { return {"auto", "float32", "bfloat16"}; }

// Decay of the learning rate after the warm-up: learning_rate_at().
enum class Schedule { linear, inverse_sqrt, cosine, plateau, constant };
inline EnumNames names_of(Schedule) {
  return {"linear", "inverse_sqrt", "cosine", "plateau", "constant"};
}

struct TrainConfig {
  int64_t seed = 1;
  int64_t epochs = 20;
  int64_t steps = 0;  // maximum number of steps; 0: no limit
  // Maximum training time, at which the schedule has decayed; 0: no limit. Rates then depend on the
  // clock, so runs and resumed runs are not reproducible to the bit.
  double minutes = 0;
  int64_t batch = 128;  // pairs per batch, divided among the replicas
  // maximum tokens of a batch, padding included; 0: use `batch`
  int64_t batch_tokens = 0;
  // Number of examples in the shuffle buffer of streamed training data; 0: all training data is in
  // memory.
  int64_t shuffle_buffer = 0;
  int64_t accumulate = 1;          // batches per step
  int64_t replicas = 2;            // copies of the model that compute in parallel
  bool sequence_parallel = false;  // processes divide sequences instead of batches
  Precision precision = Precision::automatic;
  Schedule schedule = Schedule::linear;
  double learning_rate = 2e-3;
  double final_rate = 0.02;     // final share of learning_rate for linear and cosine
  int64_t warmup_steps = 200;   // below 0: set by a run from the size of its data
  double plateau_factor = 0.5;  // for schedule plateau
  int64_t plateau_patience = 2;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double l2 = 0;
  double label_smoothing = 0.1;
  double clip_norm = 1.0;
  double weight_average = 0.999;  // decay of the moving average that is saved; 0: saves the last
                                  // weights
  int64_t rollbacks = 3;          // maximum number of returns to the last checkpoint
  std::string metric = "token_error";
  // Number of validations without improvement after the warm-up before training stops; 0: never
  // stops. A lower loss with an equal metric is an improvement.
  int64_t patience = 5;
  int64_t validate_steps = 0;  // steps between validations; 0: every epoch
  int64_t validation_examples = 2000;
  int64_t keep_checkpoints = 0;  // number of validated weights that stay in the folder
  double checkpoint_seconds = 30;
  std::string tensorboard = {};  // folder of event files; empty: the model folder
  static constexpr std::string_view no_events = "none";  // value of `tensorboard` for no event
                                                         // files

  Settings settings();  // keys train.*
};

// The learning rate of step `step`, counted from 0, of about `steps` steps. During the warm-up it
// rises linearly to learning_rate. Then
//   linear        falls linearly to final_rate * learning_rate
//   cosine        falls to the same value along half a cosine (Loshchilov & Hutter 2017, eq. 5)
//   inverse_sqrt  falls as sqrt(warmup_steps / step) (Vaswani et al. 2017, eq. 3)
//   constant, plateau  is constant; for plateau, validations lower it elsewhere
double learning_rate_at(const TrainConfig& config, int64_t step, double steps);

// Random seed of a replica in a step, both from 0. It has 32 bits, because LibTorch's Mersenne
// twister uses only these. Replicas are counted over all processes.
uint64_t noise_seed(int64_t seed, int64_t step, int64_t replica);

}  // namespace attend
