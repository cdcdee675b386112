#pragma once

#include <cstdint>
#include <string>

#include "attend/models/pair_model.h"

namespace attend {

// Copies into the network of `model` those weights of a file that have the name, dtype and shape of
// one of its parameters; `other` is the model whose weights they are. Where an axis counts the
// tokens of a vocabulary, the rows of the tokens that both models have are copied, whatever their
// places, and the other rows stay as they are; a parameter whose rows belong to no single token is
// taken where both have the same tokens alone. The rows of the features of a graph's nodes are
// copied by their numbers, as many as both graphs have. Returns how many parameters have taken
// weights. Errors as read_weights.
int64_t load_initial_weights(const PairModel& model, const PairModel& other,
                             const std::string& path);

}  // namespace attend
