#include "tests/ops/differences.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <cmath>
#include <limits>

namespace attend::reference {
namespace {

// Central differences have errors of h^2 f'''/6 + u |f| / h, here both near h^2.
const double step = std::cbrt(std::numeric_limits<double>::epsilon());
// Allows third derivatives and values of f of some hundreds.
const double tolerance = 1e3 * step * step;

}  // namespace

using at::Tensor;

Tensors leaves(const Tensors& inputs) {
  Tensors result;
  for (const Tensor& input : inputs)
    result.push_back(input.detach().clone().set_requires_grad(true));
  return result;
}

// Gradients; zeros for inputs that the function does not depend on.
Tensors gradients(const Tensor& value, const Tensors& inputs, bool create_graph) {
  Tensors result = torch::autograd::grad({value}, inputs, {}, /*retain_graph=*/true, create_graph,
                                         /*allow_unused=*/true);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!result[i].defined()) result[i] = at::zeros_like(inputs[i]);
  }
  return result;
}

void expect_central_differences(const Function& function, const Tensors& inputs,
                                const Tensors& derivatives, const std::vector<std::string>& names) {
  for (size_t n = 0; n < inputs.size(); ++n) {
    Tensors moved = inputs;
    const Tensor flat = derivatives[n].detach().contiguous().view({-1});
    for (int64_t i = 0; i < inputs[n].numel(); ++i) {
      const auto at_offset = [&](double offset) {
        moved[n] = inputs[n].detach().clone();
        moved[n].view({-1})[i] += offset;
        return function(moved).item<double>();
      };
      const double numeric = (at_offset(step) - at_offset(-step)) / (2 * step);
      const double analytic = flat[i].item<double>();
      // Negated, so that NaN fails.
      EXPECT_FALSE(!(std::abs(numeric - analytic) <= tolerance * (1 + std::abs(numeric))))
          << names[n] << "[" << i << "]: " << analytic << ", by differences " << numeric;
    }
  }
}

// As above along one random direction per input: second derivatives are expensive.
void expect_central_differences_along(const Tensors& directions, const Function& function,
                                      const Tensors& inputs, const Tensors& derivatives,
                                      const std::vector<std::string>& names) {
  for (size_t n = 0; n < inputs.size(); ++n) {
    const auto at_offset = [&](double offset) {
      Tensors moved = inputs;
      moved[n] = inputs[n].detach() + offset * directions[n];
      return function(moved).item<double>();
    };
    const double numeric = (at_offset(step) - at_offset(-step)) / (2 * step);
    const double analytic = (derivatives[n] * directions[n]).sum().item<double>();
    EXPECT_FALSE(!(std::abs(numeric - analytic) <= 10 * tolerance * (1 + std::abs(numeric))))
        << names[n] << ": " << analytic << ", by differences " << numeric;
  }
}

void expect_gradients(const Function& function, const Tensors& inputs,
                      const std::vector<std::string>& names) {
  const Tensors variables = leaves(inputs);
  const Tensors first = gradients(function(variables), variables, false);
  at::NoGradGuard no_gradients;
  expect_central_differences(function, inputs, first, names);
}

void expect_second_gradients(const Function& function, const Tensors& inputs,
                             const std::vector<std::string>& names) {
  Tensors directions, along;
  for (const Tensor& input : inputs) {
    directions.push_back(at::randn_like(input));
    along.push_back(at::randn_like(input));
  }
  const auto combined = [&](const Tensors& x) {
    const Tensors first = gradients(function(x), x, true);
    Tensor sum = at::zeros({}, at::kDouble);
    for (size_t i = 0; i < first.size(); ++i) sum = sum + (first[i] * directions[i]).sum();
    return sum;
  };
  const Tensors variables = leaves(inputs);
  const Tensors second = gradients(combined(variables), variables, false);
  expect_central_differences_along(
      along, [&](const Tensors& x) { return combined(leaves(x)).detach(); }, inputs, second, names);
}

}  // namespace attend::reference
