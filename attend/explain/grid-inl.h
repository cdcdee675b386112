#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/explain/alignment.h"

namespace attend {

// The weights of an alignment, checked.
struct Grid {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;  // row by row
  bool single = true;          // came with fewer digits than a double

  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

// Error when the weights do not belong to the tokens.
Grid checked_grid(const Alignment& alignment);

// The same, for a picture: also an Error when there are too many tokens.
Grid checked_picture_grid(const Alignment& alignment);

// The first of ..., 0.1, 0.2, 0.5, 1, 2, 5, ... that is at least the largest weight; 1 when that is
// above 0.5, or when no weight is positive.
double scale_end(const Grid& grid);

// The grid as rows of numbers, each the shortest that reads back to the same value.
nlohmann::ordered_json to_json(const Grid& grid);

// One line of JSON; bytes that are no UTF-8 become U+FFFD.
std::string dump(const nlohmann::ordered_json& document);

// A weight in at most about four columns: "" when it rounds to 0, ".87", "1.0", "12", "-.25".
std::string short_weight(double weight);

// The title, or the sizes where there is none.
std::string describe(const Alignment& alignment);

}  // namespace attend
