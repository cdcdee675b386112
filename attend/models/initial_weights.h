#pragma once

#include <cstdint>
#include <string>

#include "attend/models/pair_model.h"

namespace attend {

// Copies weights of a file into the network of `model`; `other` is the model of the file. A tensor
// is copied if a parameter has its name, dtype and shape. If an axis counts vocabulary tokens, only
// the rows of tokens that both models have are copied, matched by token; other rows stay unchanged.
// A parameter that mixes tokens is copied only if both models have the same tokens. Rows of node
// features of a graph are matched by number. Returns the number of parameters that received
// weights. Errors as read_safetensors.
int64_t load_initial_weights(const PairModel& model, const PairModel& other,
                             const std::string& path);

}  // namespace attend
