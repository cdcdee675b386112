#pragma once

#include "attend/models/pair_model.h"
#include "attend/runs/training.h"
#include "attend/train/train_config.h"

namespace attend {

// All settings of a training.
struct RunConfig {
  TextConfig text;
  ModelConfig model;
  TrainConfig train;

  Settings settings();
  const AnswerKind& answer_kind() const { return model.answer_kind(text); }
};

// Sets the defaults of the type for such targets: how texts are read, and the metric that selects
// the best weights.
void set_type_defaults(RunConfig& config, TargetKind target);

// Whether a model that starts from another model's weights uses its target tokens too: both have
// the same type, which does not answer with labels.
bool takes_target_tokens(const PairModel& initial, const ModelConfig& model);

// Configuration of a new training; precedence: flag > environment > file > default. Error if
// settings do not fit each other or the weights of options.init.
RunConfig new_config(const TrainOptions& options);

// Configuration of the training in folder options.out; train.* may be changed. Error if the command
// asks for another model or other texts.
RunConfig stored_config(const TrainOptions& options);

}  // namespace attend
