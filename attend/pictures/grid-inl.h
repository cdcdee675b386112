#pragma once

#include <string>

#include "attend/pictures/alignment.h"

namespace attend {

// Its weights. Error when they do not belong to the tokens.
const WeightGrid& checked_grid(const Alignment& alignment);

// The same, for a picture: also an Error when there are too many tokens.
const WeightGrid& checked_picture_grid(const Alignment& alignment);

// The first of ..., 0.1, 0.2, 0.5, 1, 2, 5, ... that is at least the largest weight; 1 when that is
// above 0.5, or when no weight is positive.
double scale_end(const WeightGrid& grid);

// A weight in at most about four columns: "" when it rounds to 0, ".87", "1.0", "12", "-.25".
std::string short_weight(double weight);

// The title, or the sizes where there is none.
std::string describe(const Alignment& alignment);

}  // namespace attend
