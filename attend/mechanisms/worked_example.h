#pragma once

#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// Formats the computation step by step, as on a blackboard: queries, keys, values, mapped queries
// and keys, scores, weights, context, each with its formula and shape. Shows the first batch entry
// and head, and only the corners of large matrices.
std::string worked_example(const ComputeProblem& problem);

}  // namespace attend
