#pragma once

#include <string>

#include "attend/parallel/communicator.h"
#include "attend/runs/run_config.h"
#include "attend/runs/train_data.h"
#include "attend/runs/training.h"

namespace attend::internal {

// The folder of event files; empty: none are written. Error, before anything is, where they cannot
// be.
std::string event_folder(const TrainOptions& options, const RunConfig& config);

// Trains a model whose folder is there. Error where the processes have other settings or data.
Trained run_training(const TrainOptions& options, const RunConfig& config, const PairModel& model,
                     const PairData& data, bool resume, Communicator& world,
                     const TrainWatch& watch);

}  // namespace attend::internal
