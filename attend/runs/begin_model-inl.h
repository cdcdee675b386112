#pragma once

#include <optional>

#include "attend/runs/initial_model.h"
#include "attend/runs/train_data.h"
#include "attend/runs/training_folder-inl.h"

namespace attend::internal {

// A new model, which has the vocabularies of the data and, where there is one, the weights of the
// initial model. Creates and writes its folder, which is null where another process does. Error
// where memory does not suffice or a label is none of training.
PairModel begin_model(const TrainOptions& options, const RunConfig& config, const PairData& data,
                      const std::optional<InitialModel>& initial, ModelFolder* folder,
                      const Say& say);

}  // namespace attend::internal
