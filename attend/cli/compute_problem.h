#pragma once

#include "attend/cli/choice_parameters.h"
#include "attend/cli/compute_inputs.h"
#include "attend/cli/compute_modules.h"

namespace attend {

// Every parameter that a problem's mechanism and choices read.
std::vector<ChoiceParameter> parameters_of(const ComputeProblem& problem);

// Error on choices that are not there, and on a parameter that is missing or that no choice reads.
Attended attended(const ComputeProblem& problem);

// What one part of the bias adds to the scores.
Bias bias_of(const BiasPart& part, const ComputeProblem& problem, const at::Tensor& query);

}  // namespace attend
