#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/mechanism_table.h"

namespace attend {

constexpr std::string_view decoder_state = "decoder state";
constexpr std::string_view any_vectors = "any vectors", any_set = "any set of vectors";
constexpr std::string_view sequence_positions = "positions of a sequence",
                           same_sequence = "the same sequence";

// The rows for one sequence, for positions and for normalisers.
std::vector<Mechanism> sequence_mechanisms();
// Later biases of positions, and later rotations of queries and keys.
std::vector<Mechanism> recent_positions();
std::vector<Mechanism> recent_rotations();

// The rows with a module around the operator.
std::vector<Mechanism> module_mechanisms();

// The rows for normalisers from 2019 on.
std::vector<Mechanism> normaliser_mechanisms();

}  // namespace attend
