#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attend/train/batch_source.h"

namespace attend {

// Everything that training needs to continue as if it had not stopped. Masks and data order are
// functions of seed and step, so no generator is stored.
struct Checkpoint {
  at::Tensor weights;        // [P] float
  at::Tensor average;        // [P]: the moving average of the weights
  at::Tensor first_moment;   // [P], of Adam
  at::Tensor second_moment;  // [P]
  int64_t step = 0;          // steps done
  int64_t updates = 0;       // of them, those that changed the weights
  int64_t epoch = 0;         // from 0: the one that the next batch is of
  // The batches handed out in that epoch. Sizes of 0 are unknown: older checkpoints have none.
  std::vector<BatchRun> handed_out;
  double loss_sum = 0;  // objective and target tokens since the last validation
  double loss_tokens = 0;
  double best_metric = std::numeric_limits<double>::infinity();
  // The loss beside it, which decides between equal figures; older checkpoints do not know it, and
  // no other is lower.
  double best_loss = -std::numeric_limits<double>::infinity();
  int64_t best_step = 0;
  int64_t stale_validations = 0;  // since the best
  double rate_factor = 1;         // what plateaus and roll-backs have made of the rate
  int64_t rollbacks = 0;
  double seconds = 0;  // spent training
  uint64_t data_fingerprint = 0;
  uint64_t validation_fingerprint = 0;  // of the examples of the best; 0: unknown, as above
  // They too decide on the order of the data; -1: unknown, as above.
  int64_t seed = -1;
  int64_t shuffle_buffer = -1;
  // Who computed the last step. Others sum in another order; -1: unknown.
  int64_t processes = -1;
  int64_t replicas = -1;  // of each process
  std::string metric;     // the name of what best_metric measures; empty: unknown
};

// One file, replaced crash-safely. Reading refuses a file that lacks a field, except for those
// fields that older checkpoints do not have.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
Checkpoint read_checkpoint(const std::string& path);
// The same for the bytes of a file; messages call it `path`.
Checkpoint parse_checkpoint(const std::string& bytes, const std::string& path);

// Whether the best figures of both are of one metric and the same examples.
bool compares(const Checkpoint& stored, const Checkpoint& training);

// Error where a training of other data, another train.seed or train.shuffle_buffer would continue
// from the checkpoint `stored`; `training` has no tensors.
void check_goes_on(const Checkpoint& stored, const Checkpoint& training, const std::string& path);

// What will differ for a training that continues, one line each.
std::vector<std::string> told_differences(const Checkpoint& stored, const Checkpoint& training,
                                          const std::string& path);

}  // namespace attend
