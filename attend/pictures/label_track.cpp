#include "attend/pictures/label_track.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "attend/base/error.h"
#include "attend/pictures/grid-inl.h"
#include "attend/pictures/sparkline.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr size_t tokens_per_line = 60;

// Returns up to a line of tokens, beginning at `first`.
std::string line_of(const std::vector<std::string>& tokens, size_t first) {
  std::string line;
  for (size_t i = first; i < std::min(first + tokens_per_line, tokens.size()); ++i)
    line += tokens[i];
  return line;
}

std::vector<std::string> in_one_column(const std::vector<std::string>& tokens) {
  std::vector<std::string> shown;
  for (const std::string& token : tokens) {
    shown.push_back(visible_token(token));
    if (columns(shown.back()) != 1)
      fail(
          "{} is not a single character; a track shows tokens and labels of one character: take "
          ".svg",
          in_quotes(token));
  }
  return shown;
}

// Sums of the columns.
std::vector<double> weights_on_tokens(const WeightGrid& grid) {
  std::vector<double> sums(static_cast<size_t>(grid.columns), 0.0);
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column)
      if (const double weight = grid.at(row, column); std::isfinite(weight))
        sums[static_cast<size_t>(column)] += weight;
  return sums;
}

}  // namespace

std::string label_track(const Alignment& alignment) {
  const WeightGrid& grid = checked_grid(alignment);
  if (grid.rows != grid.columns)
    fail("{} labels for {} tokens; a track has a label for each token: take .svg", grid.rows,
         grid.columns);
  const std::vector<std::string> tokens = in_one_column(alignment.source);
  const std::vector<std::string> labels = in_one_column(alignment.target);
  std::vector<std::string> blocks;
  if (!tokens.empty())
    for (const Cluster& block : clusters(sparkline(weights_on_tokens(grid), grid.columns)))
      blocks.push_back(block.bytes);
  std::string track;
  for (size_t first = 0; first < tokens.size(); first += tokens_per_line)
    track += fmt::format("{}{:>6}  {}\n        {}\n        {}\n", first == 0 ? "" : "\n", first + 1,
                         line_of(tokens, first), line_of(labels, first), line_of(blocks, first));
  return track;
}

}  // namespace attend
