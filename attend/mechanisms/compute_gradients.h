#pragma once

#include <map>
#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// The gradients of the problem's inputs for problem.context_gradient, by name: grad_query,
// grad_key, grad_value and grad_NAME of each parameter; 0 where an input does not reach the
// context. Error where the gradient has not the shape of the context.
std::map<std::string, at::Tensor> compute_gradients(const ComputeProblem& problem);

}  // namespace attend
