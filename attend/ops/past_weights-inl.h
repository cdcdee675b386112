#pragma once

#include "attend/ops/scores.h"

namespace attend {

// ScoreRow::map_past of the rows of the same names.
at::Tensor map_past_location_sensitive(const PastWeights& past, const Parameters& parameters);
at::Tensor map_past_coverage(const PastWeights& past, const Parameters& parameters);

}  // namespace attend
