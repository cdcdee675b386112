#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Writes the model of a folder with the mean of the last `count` weights that its training kept
// (train.keep_checkpoints) into a new folder; returns the steps that they were kept after. Error on
// a folder that holds no model or keeps no weights, and where `out` holds other files or another
// process writes there.
std::vector<int64_t> average_model(const std::string& folder, const std::string& out,
                                   int64_t count);

}  // namespace attend
