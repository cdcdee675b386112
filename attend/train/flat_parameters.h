#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace attend {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

// The parameters of a module as one vector of which each parameter is a view, so that optimiser,
// clipping, averaging and replicas are single tensor operations; as one for each device where they
// are on several.
class FlatParameters {
 public:
  // Moves the parameters of `module` into new vectors.
  explicit FlatParameters(const ModulePtr& module);

  // Makes the parameters of `module`, the same in order, shape and device, views of these vectors.
  void share_with(const ModulePtr& module) const;
  // Gives them gradients of their own: returns the vectors of those, zero.
  std::vector<at::Tensor> give_gradients(const ModulePtr& module) const;

  // [P] float, leaves: a device each.
  const std::vector<at::Tensor>& values() const { return values_; }

  // Vectors alike these as one, in the order of the module's parameters, whatever their devices.
  at::Tensor gathered(const std::vector<at::Tensor>& vectors) const;
  // The other way; `vectors` are written to.
  void scatter(const at::Tensor& all, const std::vector<at::Tensor>& vectors) const;

 private:
  struct Place {
    size_t vector;
    int64_t begin, size;
  };
  // Calls f(parameter, its part of `vectors`) for each parameter in order.
  template <class F>
  void for_each_part(const ModulePtr& module, const std::vector<at::Tensor>& vectors, F f) const;

  std::vector<at::Tensor> values_;
  std::vector<Place> places_;  // of each parameter
};

}  // namespace attend
