#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Weights of the last validations: weights-STEP.safetensors in a model folder.
class RecentWeights {
 public:
  // `count`: number of files to keep; 0: none are written.
  RecentWeights(std::string folder, int64_t count) : folder_(std::move(folder)), count_(count) {}

  void add(const torch::nn::Module& module, int64_t step) const;

  // Removes weights of later steps, which a training resumed from `step` will write again.
  void drop_after(int64_t step) const;

 private:
  std::string folder_;
  int64_t count_;
};

// Steps with weights in the folder, ascending.
std::vector<int64_t> kept_steps(const std::string& folder);

// Writes the mean of the weights of these steps to `path` (Vaswani et al. 2017, section 6.1). Error
// if `steps` is empty, or if the files hold different tensors.
void average_weights(const std::string& folder, const std::vector<int64_t>& steps,
                     const std::string& path);

}  // namespace attend
