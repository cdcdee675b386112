#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attend {

// A mean with its interval, low to high, and its baseline, if any.
struct IntervalLine {
  std::string name;
  double mean = 0, low = 0, high = 0;
  std::optional<double> other = {};
  bool passed = false;  // false: drawn pale
};

// The intervals of one figure over one axis, which includes 0.
struct IntervalPanel {
  std::string name;
  std::string bar = {};  // "at least 0.5"; may be empty
  std::vector<IntervalLine> lines;
};

// Draws the panels, three per row, under a title. A self-contained SVG 1.1 document: light, or dark
// if the viewer prefers that.
std::string interval_panels_svg(const std::string& title, const std::vector<IntervalPanel>& panels);

}  // namespace attend
