#pragma once

#include "attend/models/pair_model.h"
#include "attend/runs/training.h"
#include "attend/train/train_config.h"

namespace attend {

// All the settings of a training.
struct RunConfig {
  TextConfig text;
  ModelConfig model;
  TrainConfig train;

  Settings settings();
};

// Sets what a type of model is trained with for such targets where nobody says: how it reads texts,
// and by what its best weights are chosen.
void set_type_defaults(RunConfig& config, TargetKind target);

// What a new training runs with: flag > environment > file > default. Error on settings that do not
// fit.
RunConfig new_config(const TrainOptions& options);

// What the folder options.out was trained with; train.* may be changed. Error where the command
// asks for another model or other texts.
RunConfig stored_config(const TrainOptions& options);

}  // namespace attend
