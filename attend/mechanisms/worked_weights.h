#pragma once

#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// The steps of worked_example() after the biased scores: scope, normaliser, context. Queries that
// look back are shown one after another.
std::string weights_steps(const Attended& given);

}  // namespace attend
