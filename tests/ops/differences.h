#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

// Compares derivatives by autograd with central differences, in float64.
namespace attend::reference {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

// Copies that require gradients.
Tensors leaves(const Tensors& inputs);

// Gradients; zeros for inputs that the function does not depend on.
Tensors gradients(const at::Tensor& value, const Tensors& inputs, bool create_graph);

// Compares the derivative with respect to each number of each input.
void expect_central_differences(const Function& function, const Tensors& inputs,
                                const Tensors& derivatives, const std::vector<std::string>& names);

// Along one direction per input, for second derivatives, which are expensive.
void expect_central_differences_along(const Tensors& directions, const Function& function,
                                      const Tensors& inputs, const Tensors& derivatives,
                                      const std::vector<std::string>& names);

// Checks the first derivatives of a scalar function with respect to each number of each input.
void expect_gradients(const Function& function, const Tensors& inputs,
                      const std::vector<std::string>& names);

// Checks the second derivatives: differences of a random combination of the first ones.
void expect_second_gradients(const Function& function, const Tensors& inputs,
                             const std::vector<std::string>& names);

}  // namespace attend::reference
