#pragma once

#include "attend/ops/scores.h"

namespace attend {

// Returns nullptr if an optional parameter is absent.
const at::Tensor* find_parameter(const Parameters& parameters, std::string_view name);

// Scores for linear attention: products of features that are never negative.
ScoreRow elu_features_row();
ScoreRow positive_features_row();

// ScoreRow::map_past of the scores with these names.
at::Tensor map_past_location_sensitive(const PastWeights& past, const Parameters& parameters);
at::Tensor map_past_coverage(const PastWeights& past, const Parameters& parameters);

}  // namespace attend
