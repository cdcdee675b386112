#pragma once

#include <string>

#include "attend/models/pair_model.h"
#include "attend/runs/run_config.h"
#include "attend/runs/training.h"

namespace attend {

// The model of --init. A new model starts from its weights, and therefore uses its source tokens
// and text splitting: the weights are meaningless for other tokens. A model of the same type that
// does not answer with labels also uses its target tokens.
struct InitialModel {
  std::string folder;
  PairModel model;
};

// Rebuilds the network of `model` with the tokens and weights of the initial model. Before the
// call, the vocabularies of `model` come from its data. With --init-vocabulary extend, further
// tokens of the data follow. Reports the numbers of new tokens and copied weights. Error if no
// weight fits.
void begin_from(const InitialModel& initial, const TrainOptions& options, PairModel& model,
                const Say& say);

}  // namespace attend
