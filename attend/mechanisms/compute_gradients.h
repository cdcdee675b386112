#pragma once

#include <map>
#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// Returns the gradients of the problem's inputs for problem.context_gradient, by name: grad_query,
// grad_key, grad_value and grad_NAME of each parameter. A gradient is 0 if the input does not reach
// the context. Error if context_gradient does not have the shape of the context.
std::map<std::string, at::Tensor> compute_gradients(const ComputeProblem& problem);

}  // namespace attend
