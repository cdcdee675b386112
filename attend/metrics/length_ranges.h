#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace attend {

// Source lengths from `first` to `last`, in tokens.
struct LengthRange {
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();

  bool holds(int64_t length) const { return first <= length && length <= last; }
};

// Up to six ranges that cover all lengths. Their widths are similar, except for the ends, which
// hold the rare lengths.
std::vector<LengthRange> length_ranges(std::vector<int64_t> lengths);

}  // namespace attend
