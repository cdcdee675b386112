#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Averages the last `count` weights that a training kept in a model folder (train.keep_checkpoints)
// and writes the model to a new folder `out`. Returns the steps of these weights. Error if `folder`
// has no model or no kept weights, or if `out` holds other files or another process writes there.
std::vector<int64_t> average_model(const std::string& folder, const std::string& out,
                                   int64_t count);

}  // namespace attend
