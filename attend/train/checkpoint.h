#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attend/train/batch_source.h"

namespace attend {

// All state that training needs to resume as if it had not stopped. Dropout masks and data order
// depend only on seed and step, so random generators are not stored.
struct Checkpoint {
  at::Tensor weights;        // [P] float
  at::Tensor average;        // [P]: the moving average of the weights
  at::Tensor first_moment;   // [P], Adam
  at::Tensor second_moment;  // [P], Adam
  int64_t step = 0;          // number of steps done
  int64_t updates = 0;       // number of steps that changed the weights
  int64_t epoch = 0;         // epoch of the next batch, from 0
  // Batches of that epoch so far. Sizes of 0 are unknown, as in older checkpoints.
  std::vector<BatchRun> handed_out;
  double loss_sum = 0;  // sum of the objective since the last validation
  double loss_tokens = 0;
  double best_metric = std::numeric_limits<double>::infinity();
  // Loss at the best metric, which breaks ties. Unknown in older checkpoints: no other loss is
  // lower than the default.
  double best_loss = -std::numeric_limits<double>::infinity();
  int64_t best_step = 0;
  int64_t stale_validations = 0;  // validations since the best
  double rate_factor = 1;         // factor of the learning rate, from plateaus and rollbacks
  int64_t rollbacks = 0;
  double seconds = 0;  // training time
  uint64_t data_fingerprint = 0;
  uint64_t validation_fingerprint = 0;  // hash of the validation examples; 0: unknown, as in older
                                        // checkpoints
  // These also determine the data order; -1: unknown, as in older checkpoints.
  int64_t seed = -1;
  int64_t shuffle_buffer = -1;
  // Process and replica counts of the last step; other counts change the summation order. -1:
  // unknown.
  int64_t processes = -1;
  int64_t replicas = -1;  // per process
  std::string metric;     // name of the metric of best_metric; empty: unknown
};

// One file, replaced crash-safely. Reading throws an Error if a field is missing, except for fields
// that older checkpoints lack.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
Checkpoint read_checkpoint(const std::string& path);
// As read_checkpoint, for the bytes of a file; `path` is only used in messages.
Checkpoint parse_checkpoint(const std::string& bytes, const std::string& path);

// Whether the best metrics of both can be compared: same metric, same validation examples.
bool same_metric(const Checkpoint& stored, const Checkpoint& training);

// Error if training with other data, another train.seed or another train.shuffle_buffer would
// resume from `stored`. `training` needs no tensors.
void check_resumable(const Checkpoint& stored, const Checkpoint& training, const std::string& path);

// Warnings about changes in a resumed training, one line each.
std::vector<std::string> resume_warnings(const Checkpoint& stored, const Checkpoint& training,
                                         const std::string& path);

}  // namespace attend
