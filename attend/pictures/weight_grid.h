#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attend {

// Map of weights for pictures: rows are queries, columns are keys.
struct WeightGrid {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values = {};  // row by row
  bool single = true;               // values are float32, and are written with a float32's digits

  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

}  // namespace attend
