#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Points on a plane, such as a map of weights is drawn on.
struct Scatter {
  struct Point {
    double x = 0, y = 0;  // finite
    std::string label;
    double weight = 0;  // 0 or more; the strongest colour is that of the largest
  };
  std::vector<Point> points;
  std::string title = {};  // may be empty
};

inline constexpr int64_t most_scattered_points = 5000;

// A self-contained SVG document: light, or dark where the viewer prefers that. Each axis begins at
// its smallest number and ends at its largest, which it names. Error where there are over
// most_scattered_points points.
std::string scatter_svg(const Scatter& scatter);

}  // namespace attend
