#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace attend {

// Lengths first ... last of a source, in tokens.
struct LengthRange {
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();

  bool holds(int64_t length) const { return first <= length && length <= last; }
};

// Up to six ranges that together hold all of those lengths, about alike in width but for the ends,
// which take the rare ones.
std::vector<LengthRange> length_ranges(std::vector<int64_t> lengths);

}  // namespace attend
