#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attend {

// A mean with its interval, low to high, and the number that it is compared with, if any.
struct IntervalLine {
  std::string name;
  double mean = 0, low = 0, high = 0;
  std::optional<double> other = {};
  bool passed = false;  // drawn pale where it did not
};

// The intervals of one figure over one axis, which holds 0.
struct IntervalPanel {
  std::string name;
  std::string bar = {};  // "at least 0.5"; may be empty
  std::vector<IntervalLine> lines;
};

// The panels, three in a row, under a title. A self-contained SVG 1.1 document, light, or dark
// where the viewer prefers that.
std::string interval_panels_svg(const std::string& title, const std::vector<IntervalPanel>& panels);

}  // namespace attend
