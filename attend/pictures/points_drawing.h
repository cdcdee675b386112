#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Points of a plane on which a map of weights is drawn.
struct PointsDrawing {
  struct Point {
    double x = 0, y = 0;  // y upwards
    double weight = 0;    // 0 or more; the largest has the strongest colour
  };
  std::vector<Point> points;
  std::string title = {};  // may be empty
};

inline constexpr int64_t max_drawn_points = 2000;

// Returns a self-contained SVG document with equal scales of both axes: light, or dark if the
// viewer prefers that. Error without points or with more than max_drawn_points, and if a
// coordinate is not finite or beyond 1e100 in magnitude.
std::string points_svg(const PointsDrawing& drawing);

}  // namespace attend
