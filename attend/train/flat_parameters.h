#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace attend {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

// The parameters of a module as one vector of which each parameter is a view, so that optimiser,
// clipping, averaging and replicas are single tensor operations.
class FlatParameters {
 public:
  // Moves the parameters of `module` into a new vector.
  explicit FlatParameters(const ModulePtr& module);

  // Makes the parameters of `module`, the same in order and shape, views of this vector, with
  // gradients of their own: returns the vector of those gradients, zero.
  at::Tensor share_with(const ModulePtr& module);

  const at::Tensor& values() const { return values_; }  // [P] float, a leaf

 private:
  at::Tensor values_;
};

}  // namespace attend
