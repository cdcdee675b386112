#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// The weights of the last validations: weights-STEP.safetensors in a model folder.
class KeptWeights {
 public:
  // `count`: how many stay; 0: none are written.
  KeptWeights(std::string folder, int64_t count) : folder_(std::move(folder)), count_(count) {}

  void add(const torch::nn::Module& module, int64_t step) const;

  // Removes those of later steps, which a training that continues from `step` will write again.
  void drop_after(int64_t step) const;

 private:
  std::string folder_;
  int64_t count_;
};

// The steps whose weights are in the folder, rising.
std::vector<int64_t> kept_steps(const std::string& folder);

// Writes to `path` the mean of the weights of those steps (Vaswani et al. 2017, section 6.1).
// Error when there is none, or when they hold different tensors.
void average_weights(const std::string& folder, const std::vector<int64_t>& steps,
                     const std::string& path);

}  // namespace attend
