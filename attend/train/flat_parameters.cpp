#include "attend/train/flat_parameters.h"

namespace attend {
namespace {

using at::Tensor;

// Calls f(parameter, its part of `flat`) for each parameter in order.
template <class F>
void for_each_part(const ModulePtr& module, const Tensor& flat, F f) {
  int64_t offset = 0;
  for (Tensor& parameter : module->parameters()) {
    f(parameter, flat.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
    offset += parameter.numel();
  }
  TORCH_INTERNAL_ASSERT(offset == flat.numel());
}

}  // namespace

FlatParameters::FlatParameters(const ModulePtr& module) {
  torch::NoGradGuard no_gradient;
  std::vector<Tensor> parts;
  for (const Tensor& parameter : module->parameters()) parts.push_back(parameter.reshape({-1}));
  values_ = at::cat(parts);
}

Tensor FlatParameters::share_with(const ModulePtr& module) {
  Tensor gradients = at::zeros_like(values_);
  for_each_part(module, values_.detach(),
                [](Tensor& parameter, const Tensor& part) { parameter.set_data(part); });
  for_each_part(module, gradients,
                [](Tensor& parameter, const Tensor& part) { parameter.mutable_grad() = part; });
  return gradients;
}

}  // namespace attend
