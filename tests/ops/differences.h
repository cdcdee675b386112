#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

// Derivatives by autograd against central differences, in float64.
namespace attend::reference {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

// Copies that require gradients.
Tensors leaves(const Tensors& inputs);

// The gradients, 0 where the function does not depend on an input.
Tensors gradients(const at::Tensor& value, const Tensors& inputs, bool create_graph);

// Compares the gradient of every number of every input.
void expect_central_differences(const Function& function, const Tensors& inputs,
                                const Tensors& derivatives, const std::vector<std::string>& names);

// Along one direction an input: enough for second derivatives, which are dear.
void expect_central_differences_along(const Tensors& directions, const Function& function,
                                      const Tensors& inputs, const Tensors& derivatives,
                                      const std::vector<std::string>& names);

// The first derivatives of a function of one number, of every number of every input.
void expect_gradients(const Function& function, const Tensors& inputs,
                      const std::vector<std::string>& names);

// The second ones: differences of a random combination of the first.
void expect_second_gradients(const Function& function, const Tensors& inputs,
                             const std::vector<std::string>& names);

}  // namespace attend::reference
