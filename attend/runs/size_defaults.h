#pragma once

#include <cstdint>
#include <string>

#include "attend/runs/run_config.h"

namespace attend {

// Settings with defaults that depend on the amount of data. Unset values: 0 for train.batch and
// train.epochs; below 0 for train.warmup_steps, train.patience and model.dropout of a recurrent
// model.

// Unsets these settings.
void leave_to_size(RunConfig& config);

// Sets the unset settings from the number of training pairs; 0: unknown, as for a stream or a text.
// `windows`: approximate number of windows of a text. Returns one line with the chosen values;
// empty if none was set or worth reporting.
std::string settle_by_size(RunConfig& config, int64_t pairs, int64_t windows = 0);

// Copies the values of unset settings from another training.
void settle_as(RunConfig& config, RunConfig& settled);

}  // namespace attend
