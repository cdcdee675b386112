#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/mechanism_table.h"

namespace attend {

constexpr std::string_view decoder_state = "decoder state";
constexpr std::string_view any_vectors = "any vectors", any_set = "any set of vectors";

// The rows for one sequence, for positions and for normalisers.
std::vector<Mechanism> sequence_mechanisms();

// The rows with a module around the operator.
std::vector<Mechanism> module_mechanisms();

}  // namespace attend
