#pragma once

#include <torch/torch.h>

#include <functional>

#include "tests/ops/differences.h"

namespace attend::reference {

// The derivatives of a number with respect to every parameter of a module in float64, against
// differences. The function reads the parameters, so they are moved in place and put back.
inline void expect_parameter_gradients(torch::nn::Module& module,
                                       const std::function<at::Tensor()>& function) {
  const Tensors parameters = module.parameters();
  std::vector<std::string> names;
  Tensors values;
  for (const auto& item : module.named_parameters()) {
    names.push_back(item.key());
    values.push_back(item.value().detach().clone());
  }
  const Tensors derivatives = gradients(function(), parameters, /*create_graph=*/false);
  const auto at_values = [&](const Tensors& moved) {
    for (size_t i = 0; i < moved.size(); ++i) parameters[i].copy_(moved[i]);
    return function();
  };
  at::NoGradGuard no_gradient;
  expect_central_differences(at_values, values, derivatives, names);
  at_values(values);
}

}  // namespace attend::reference
