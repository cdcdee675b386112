#pragma once

#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// The steps of worked_example() from the scores with their bias on: scope, normaliser, context.
// Queries that look back at those before are shown one after another.
std::string weights_steps(const Attended& given);

}  // namespace attend
