#pragma once

#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// The computation step by step, as one would write it on a blackboard: queries, keys, values, what
// the score makes of them, scores, weights, context, each with its formula and shape. Of a batch or
// several heads, the first; of large matrices, the corners.
std::string worked_example(const ComputeProblem& problem);

}  // namespace attend
