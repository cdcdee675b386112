#include "attend/metrics/length_ranges.h"

#include <algorithm>

namespace attend {
namespace {

// Number of ranges between the rare short and the rare long sources.
constexpr int64_t inner_ranges = 4;

// Length that `share` of the sources do not exceed.
int64_t quantile(const std::vector<int64_t>& sorted, double share) {
  for (size_t i = 0; i < sorted.size(); ++i)
    if (static_cast<double>(i + 1) >= share * static_cast<double>(sorted.size())) return sorted[i];
  return 0;
}

}  // namespace

std::vector<LengthRange> length_ranges(std::vector<int64_t> lengths) {
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  const int64_t low = quantile(lengths, 0.05), high = quantile(lengths, 0.95);
  const int64_t width = std::max<int64_t>(1, (high - low + inner_ranges - 1) / inner_ranges);
  std::vector<LengthRange> ranges = {{lengths.front(), low}};
  while (ranges.back().last < high)
    ranges.push_back({ranges.back().last + 1, ranges.back().last + width});
  ranges.back().last = lengths.back();
  return ranges;
}

}  // namespace attend
