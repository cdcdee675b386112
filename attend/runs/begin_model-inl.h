#pragma once

#include <optional>

#include "attend/runs/initial_model.h"
#include "attend/runs/train_data.h"
#include "attend/runs/training_folder-inl.h"

namespace attend::internal {

// Makes a new model with vocabularies from the data and, if set, weights of the initial model.
// Creates and writes its folder; `folder` is null if another process does this. Error if memory
// does not suffice or a label is not in the training data.
PairModel begin_model(const TrainOptions& options, const RunConfig& config, const PairData& data,
                      const std::optional<InitialModel>& initial, ModelFolder* folder,
                      const Say& say);

}  // namespace attend::internal
