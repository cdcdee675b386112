#pragma once

#include "attend/ops/scores.h"

namespace attend {

// The rows of linear attention: scores of features that are never negative.
ScoreRow elu_features_row();
ScoreRow positive_features_row();

}  // namespace attend
