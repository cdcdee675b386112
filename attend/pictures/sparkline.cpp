#include "attend/pictures/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Means of `width` runs of about equal length.
std::vector<double> resampled(const std::vector<double>& values, size_t width) {
  if (values.size() <= width) return values;
  std::vector<double> means(width);
  for (size_t i = 0; i < width; ++i) {
    const auto begin = values.begin() + static_cast<int64_t>(i * values.size() / width);
    const auto end = values.begin() + static_cast<int64_t>((i + 1) * values.size() / width);
    means[i] = std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
  }
  return means;
}

}  // namespace

std::string sparkline(const std::vector<double>& values, int64_t width) {
  if (width < 1) fail("[sparkline] a width of {}; it must be at least 1", width);
  const std::vector<double> shown = resampled(values, static_cast<size_t>(width));
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : shown) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string line;
  for (const double value : shown) {
    if (!std::isfinite(value)) {
      line += ' ';
      continue;
    }
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    line += kBlocks[static_cast<size_t>(std::min(share * 8, 7.0))];
  }
  return line;
}

}  // namespace attend
