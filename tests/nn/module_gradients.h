#pragma once

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <functional>

#include "tests/ops/differences.h"

namespace attend::reference {

// Checks the derivatives of a number with respect to every float64 parameter of a module against
// differences. The function reads the parameters, which are changed in place and restored.
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

// As above along one random direction per parameter, for larger modules; leaves the gradients in
// place. Central differences of step h have errors of h^2 times a third derivative and eps / h
// times the value: 1e-12 and 1e-9 at h = 1e-6 for a loss of 10.
inline void expect_parameter_slopes(torch::nn::Module& module,
                                    const std::function<at::Tensor()>& function) {
  function().backward();
  const at::NoGradGuard no_gradient;
  constexpr double h = 1e-6;
  for (auto& item : module.named_parameters()) {
    at::Tensor& parameter = item.value();
    ASSERT_TRUE(parameter.grad().defined()) << item.key();
    const at::Tensor direction = at::randn_like(parameter);
    const double slope = (parameter.grad() * direction).sum().item<double>();
    parameter.add_(direction, h);
    const auto above = function().item<double>();
    parameter.sub_(direction, 2 * h);
    const auto below = function().item<double>();
    parameter.add_(direction, h);
    EXPECT_NEAR(slope, (above - below) / (2 * h), 1e-7 * (1 + std::abs(slope))) << item.key();
  }
}

}  // namespace attend::reference
