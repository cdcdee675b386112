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

// Sets a type's defaults for training with such targets: how it reads texts, and which metric
// chooses its best weights.
void set_type_defaults(RunConfig& config, TargetKind target);

// The configuration of a new training: flag > environment > file > default. Error on settings that
// do not fit.
RunConfig new_config(const TrainOptions& options);

// The configuration that the folder options.out was trained with; train.* may be changed. Error
// where the command wants another model or other texts.
RunConfig stored_config(const TrainOptions& options);

}  // namespace attend
