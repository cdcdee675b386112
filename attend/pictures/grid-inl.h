#pragma once

#include <string>

#include "attend/pictures/alignment.h"

namespace attend {

// Returns the weights of the alignment. Error if their size differs from the numbers of tokens.
const WeightGrid& checked_grid(const Alignment& alignment);

// Like checked_grid(), for a picture: also an Error if there are too many tokens.
const WeightGrid& checked_picture_grid(const Alignment& alignment);

// Returns the least number of the form 1, 2 or 5 times a power of ten that is at least the largest
// weight; 1 if no weight is positive.
double scale_end(const WeightGrid& grid);

// Writes a weight in about four columns at most: "" if it rounds to 0, ".87", "1.0", "12", "-.25".
std::string short_weight(double weight);

// Returns the title, or the sizes if there is none.
std::string describe(const Alignment& alignment);

}  // namespace attend
