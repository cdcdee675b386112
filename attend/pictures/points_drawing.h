#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Points of a plane, such as a map of weights is drawn on.
struct PointsDrawing {
  struct Point {
    double x = 0, y = 0;  // y upwards
    double weight = 0;    // 0 or more; the strongest colour is that of the largest
  };
  std::vector<Point> points;
  std::string title = {};  // may be empty
};

inline constexpr int64_t most_drawn_points = 2000;

// A self-contained SVG document, one unit as long in either direction: light, or dark where the
// viewer prefers that. Error where there are over most_drawn_points points or none, and where a
// place is not finite or beyond 1e100 either way.
std::string points_svg(const PointsDrawing& drawing);

}  // namespace attend
