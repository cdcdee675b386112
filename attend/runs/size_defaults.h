#pragma once

#include <cstdint>
#include <string>

#include "attend/runs/run_config.h"

namespace attend {

// Settings that depend on how much there is to learn from, where nobody says: train.batch and
// train.epochs, 0 until then, and model.dropout of a recurrent model, below 0 until then.

// Leaves them to the size of the data.
void leave_to_size(RunConfig& config);

// Sets those that are left, by the number of training pairs; 0: it is not known, as of a stream or
// a text. Returns what was set and why, a line; empty where nothing was left.
std::string settle_by_size(RunConfig& config, int64_t pairs);

// Sets those that are left as another training has them.
void settle_as(RunConfig& config, RunConfig& settled);

}  // namespace attend
