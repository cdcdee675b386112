#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace attend {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

// The parameters of a module as one vector per device, with each parameter a view. The optimiser,
// clipping, averaging and replicas are then single tensor operations.
class FlatParameters {
 public:
  // Copies the parameters of `module` into new vectors.
  explicit FlatParameters(const ModulePtr& module);

  // Makes the parameters of `module` views of these vectors. Their order, shapes and devices must
  // match.
  void share_with(const ModulePtr& module) const;
  // Makes the gradients of `module` views of new zero vectors, and returns the vectors.
  std::vector<at::Tensor> give_gradients(const ModulePtr& module) const;

  // [P] float leaf tensors, one per device.
  const std::vector<at::Tensor>& values() const { return values_; }

  // Joins such vectors into one, in the order of the module's parameters.
  at::Tensor gathered(const std::vector<at::Tensor>& vectors) const;
  // The inverse: writes to `vectors`.
  void scatter(const at::Tensor& all, const std::vector<at::Tensor>& vectors) const;

 private:
  struct Slot {
    size_t vector;
    int64_t begin, size;
  };
  // Calls f(parameter, its part of `vectors`) for each parameter, in order.
  template <class F>
  void for_each_part(const ModulePtr& module, const std::vector<at::Tensor>& vectors, F f) const;

  std::vector<at::Tensor> values_;
  std::vector<Slot> slots_;  // per parameter
};

}  // namespace attend
