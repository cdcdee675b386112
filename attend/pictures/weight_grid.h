#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attend {

// A map of weights as pictures take it: rows look, columns are looked at.
struct WeightGrid {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values = {};  // row by row
  bool single = true;               // values of float32, written with the digits that these have

  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

}  // namespace attend
