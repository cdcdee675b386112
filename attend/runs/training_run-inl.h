#pragma once

#include <string>

#include "attend/parallel/communicator.h"
#include "attend/runs/run_config.h"
#include "attend/runs/train_data.h"
#include "attend/runs/training.h"

namespace attend::internal {

// The folder for event files; empty if none are written. Error if it cannot be written, before any
// file is written.
std::string event_folder(const TrainOptions& options, const RunConfig& config);

// Trains a model in its existing folder. Error if the processes have different settings or data.
Trained run_training(const TrainOptions& options, const RunConfig& config, const PairModel& model,
                     const PairData& data, bool resume, Communicator& world,
                     const TrainWatch& watch);

}  // namespace attend::internal
