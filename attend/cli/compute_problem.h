#pragma once

#include "attend/cli/choice_parameters.h"
#include "attend/cli/compute_inputs.h"

namespace attend {

// What the choices and parameters of a problem come to.
struct Attended {
  at::Tensor query, key, value;  // as attention() takes them
  AttentionSpec spec;
};

// Error on choices that are not there, and on a parameter that is missing or that no choice reads.
Attended attended(const ComputeProblem& problem);

// What one part of the bias adds to the scores.
Bias bias_of(const BiasPart& part, const ComputeProblem& problem, const at::Tensor& query);

}  // namespace attend
