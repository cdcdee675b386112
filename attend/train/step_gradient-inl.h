#pragma once

#include <string>
#include <vector>

#include "attend/nn/worker_threads.h"
#include "attend/parallel/communicator.h"
#include "attend/train/optimiser.h"
#include "attend/train/trainer.h"

namespace attend::internal {

struct StepGradient {
  double objective = 0;  // summed over the target tokens of all processes
  double norm = 0;       // norm of its gradient per token
  int64_t tokens = 0;
};

// The gradient of a step: each replica of each process computes its share of the batches.
class StepGradients {
 public:
  // All arguments must outlive this object.
  StepGradients(const TrainConfig& config, const TrainTask& task, Communicator& world,
                Optimiser& optimiser);

  // Leaves the sum in the optimiser. Steps count from 0 and determine dropout.
  StepGradient compute(const std::vector<std::vector<EncodedPair>>& batches, int64_t step,
                       WorkerThreads& threads);

 private:
  double compute_share(const std::vector<std::vector<EncodedPair>>& batches, int64_t step,
                       int64_t replica, int64_t tokens);

  const TrainConfig& config_;
  const TrainTask& task_;
  Communicator& world_;
  Optimiser& optimiser_;
  bool bfloat16_products_;
};

// Names a value of a replica that is not finite, for messages.
std::string not_finite(const torch::nn::Module& module);

}  // namespace attend::internal
