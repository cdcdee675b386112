#include "attend/pictures/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/pictures/grid-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {

void check_grid(const Alignment& alignment, const WeightGrid& grid) {
  const auto rows = static_cast<int64_t>(alignment.target.size());
  const auto columns = static_cast<int64_t>(alignment.source.size());
  if (grid.rows != rows || grid.columns != columns ||
      grid.values.size() != alignment.target.size() * alignment.source.size())
    fail("[explain] {} weights have shape [{}, {}]; {} target and {} source tokens need [{}, {}]",
         grid.values.size(), grid.rows, grid.columns, rows, columns, rows, columns);
}

const WeightGrid& checked_grid(const Alignment& alignment) {
  check_grid(alignment, alignment.weights);
  return alignment.weights;
}

const WeightGrid& checked_picture_grid(const Alignment& alignment) {
  const size_t limit = kMaximumPictureTokens;
  if (alignment.source.size() > limit || alignment.target.size() > limit) {
    fail(
        "[explain] {} source and {} target tokens are too many for a picture (at most {} each); "
        "explain a part of the text, or write .json for all weights",
        alignment.source.size(), alignment.target.size(), limit);
  }
  return checked_grid(alignment);
}

double scale_end(const WeightGrid& grid) {
  double largest = 0;
  for (const double value : grid.values) {
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  // The sums of softmax rows may exceed 1 by rounding.
  if (largest <= 0 || (largest > 0.5 && largest <= 1 + 1e-3)) return 1;
  const double power = std::pow(10, std::floor(std::log10(largest)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (largest <= step * power) return step * power;
  }
  return 10 * power;
}

std::string short_weight(double weight) {
  if (!std::isfinite(weight)) return std::isnan(weight) ? "nan" : weight > 0 ? "inf" : "-inf";
  const double size = std::abs(weight);
  if (size < 0.005) return "";
  const char* sign = weight < 0 ? "-" : "";
  if (size < 0.995) return fmt::format("{}.{:02d}", sign, std::lround(100 * size));
  if (size < 9.95) return fmt::format("{:.1f}", weight);
  return size < 999.5 ? fmt::format("{:.0f}", weight) : fmt::format("{}999+", sign);
}

std::string describe(const Alignment& alignment) {
  if (!alignment.title.empty()) return visible_text(alignment.title);
  return fmt::format("Attention of {} target tokens to {} source tokens", alignment.target.size(),
                     alignment.source.size());
}

}  // namespace attend
