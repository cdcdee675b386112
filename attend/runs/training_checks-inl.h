#pragma once

#include "attend/models/pair_model.h"
#include "attend/parallel/communicator.h"
#include "attend/runs/run_config.h"
#include "attend/runs/train_data.h"

namespace attend::internal {

// Each throws an Error if the options of a training do not fit its settings, data, model or
// processes.
void check_sharing(const TrainOptions& options, const RunConfig& config);
void check_work_for_all(const TrainOptions& options, const RunConfig& config, const PairData& data,
                        const Communicator& world);
void check_metric(const RunConfig& config, const PairModel& model);

}  // namespace attend::internal
