#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attend/base/settings.h"

namespace attend {

// The type of the factors of large products: bfloat16 where the processor multiplies it itself, or
// always the one.
enum class Precision { automatic, float32, bfloat16 };
inline EnumNames names_of(Precision) { return {"auto", "float32", "bfloat16"}; }

// How the rate falls after the warm-up: learning_rate_at().
enum class Schedule { linear, inverse_sqrt, cosine, plateau, constant };
inline EnumNames names_of(Schedule) {
  return {"linear", "inverse_sqrt", "cosine", "plateau", "constant"};
}

struct TrainConfig {
  int64_t seed = 1;
  int64_t epochs = 20;
  int64_t steps = 0;  // stop after so many steps; 0: no limit
  // Stops after so long, and the schedule has decayed by then; 0: no limit. Rates follow the clock:
  // two runs are not the same to the bit, nor is one that was resumed.
  double minutes = 0;
  int64_t batch = 128;  // pairs per batch, shared out over the replicas
  // 0: as `batch` says; else the most tokens of a batch, padding included
  int64_t batch_tokens = 0;
  // 0: all training data is in memory; else so many examples of it, from which the next one is
  // drawn.
  int64_t shuffle_buffer = 0;
  int64_t accumulate = 1;          // batches per step
  int64_t replicas = 2;            // copies of the model that work in parallel
  bool sequence_parallel = false;  // processes share sequences in place of batches
  Precision precision = Precision::automatic;
  Schedule schedule = Schedule::linear;
  double learning_rate = 2e-3;
  double final_rate = 0.02;     // share of learning_rate that linear and cosine decay end at
  int64_t warmup_steps = 200;   // below 0: a run sets it by the size of its data
  double plateau_factor = 0.5;  // of schedule plateau
  int64_t plateau_patience = 2;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double l2 = 0;
  double label_smoothing = 0.1;
  double clip_norm = 1.0;
  double weight_average = 0.999;  // decay of the moving average that is saved; 0: the last weights
  int64_t rollbacks = 3;          // returns to the last checkpoint before training is lost
  std::string metric = "token_error";
  // Validations after the warm-up without improvement before stopping; 0: never. A lower loss with
  // an equal metric is an improvement.
  int64_t patience = 5;
  int64_t validate_steps = 0;  // steps between validations; 0: every epoch
  int64_t validation_examples = 2000;
  int64_t keep_checkpoints = 0;  // the weights of so many validations stay in the folder
  double checkpoint_seconds = 30;
  std::string tensorboard = {};  // folder of event files; empty: the model's own
  static constexpr std::string_view no_events = "none";  // in place of the folder: no such files

  Settings settings();  // keys train.*
};

// The rate of step `step`, from 0, of about `steps` in all. Through the warm-up it rises linearly
// to learning_rate; after it
//   linear        falls linearly to final_rate * learning_rate
//   cosine        falls to the same along half a cosine (Loshchilov & Hutter 2017, eq. 5)
//   inverse_sqrt  falls as sqrt(warmup_steps / step) (Vaswani et al. 2017, eq. 3)
//   constant, plateau  stays; validations lower plateau, which is not seen here
double learning_rate_at(const TrainConfig& config, int64_t step, double steps);

// The seed of the noise of a replica in a step, both from 0, in 32 bits: LibTorch's Mersenne
// twister reads no more. Replicas are counted over all processes.
uint64_t noise_seed(int64_t seed, int64_t step, int64_t replica);

}  // namespace attend
