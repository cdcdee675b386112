#pragma once

#include <string>

#include "attend/models/pair_model.h"
#include "attend/runs/run_config.h"
#include "attend/runs/training.h"

namespace attend {

// The model that --init names. A new model begins with its weights, and so with its source tokens
// and its way to split texts, as the weights mean nothing for other tokens. A model of the same
// type takes its target tokens too.
struct InitialModel {
  std::string folder;
  PairModel model;
};

// Makes the network of `model`, whose vocabularies are those of its data, anew: with the tokens of
// the initial model and, by --init-vocabulary extend, those behind them that the data has more, and
// with its weights. Tells how many tokens and weights that are. Error where no weight fits.
void begin_from(const InitialModel& initial, const TrainOptions& options, PairModel& model,
                const Say& say);

}  // namespace attend
