#pragma once

#include <vector>

#include "attend/nn/mechanism_table.h"

namespace attend {

// The rows of one sequence, of positions and of normalisers.
std::vector<Mechanism> sequence_mechanisms();

}  // namespace attend
