#pragma once

#include <cstdint>
#include <string>

#include "attend/runs/run_config.h"

namespace attend {

// Settings whose defaults depend on the amount of data: train.batch and train.epochs, 0 until then,
// and train.warmup_steps and model.dropout of a recurrent model, below 0 until then.

// Leaves them to the size of the data.
void leave_to_size(RunConfig& config);

// Sets those without a value by the number of training pairs; 0: it is not known, as for a stream
// or a text. `windows` is about how many windows a text has. Returns what was set and why, in one
// line; empty if all had values.
std::string settle_by_size(RunConfig& config, int64_t pairs, int64_t windows = 0);

// Sets those without a value as another training has them.
void settle_as(RunConfig& config, RunConfig& settled);

}  // namespace attend
