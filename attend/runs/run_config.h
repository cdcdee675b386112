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

// Whether a model that begins with the weights of another one takes its target tokens, too: where
// both are of one type, and answer with no labels.
bool takes_target_tokens(const PairModel& initial, const ModelConfig& model);

// The configuration of a new training: flag > environment > file > default. Error on settings that
// do not fit each other, or the weights that options.init names.
RunConfig new_config(const TrainOptions& options);

// The configuration that the folder options.out was trained with; train.* may be changed. Error
// where the command wants another model or other texts.
RunConfig stored_config(const TrainOptions& options);

}  // namespace attend
