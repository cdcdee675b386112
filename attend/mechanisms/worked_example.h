#pragma once

#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// The computation step by step, as one would write it on a blackboard: queries, keys, values, what
// the score makes of them, scores, weights, context, each with its formula and shape. It shows the
// first entry of a batch, the first head of several, and the corners of large matrices.
std::string worked_example(const ComputeProblem& problem);

}  // namespace attend
