#pragma once

#include <limits>
#include <string>
#include <vector>

namespace attend {

// Point of a line, with the lowest and highest value there if there are several runs.
struct ChartPoint {
  double x;
  double y;                                               // not finite: the line has a gap
  double low = std::numeric_limits<double>::quiet_NaN();  // the band is drawn if both are finite
  double high = std::numeric_limits<double>::quiet_NaN();
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  // joined in the order given
};

// Lines over one pair of axes.
struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartSeries> series;
  bool y_from_zero = true;       // false: the axis begins near the smallest value
  bool y_as_percent = false;     // 0.25 is labelled 25 %
  bool x_powers_of_two = false;  // x holds binary logarithms: 9 is labelled 512
  bool y_powers_of_ten = false;  // y holds decimal logarithms: -3 is labelled 0.001
  double width = 720;            // pixels, 200 to 4000
  double height = 440;
};

// Returns a self-contained SVG 1.1 document with a legend: light, or dark if the viewer prefers
// that. Lines of up to 60 points have markers. Error on a size out of range, more than 24 series,
// more than a million points, or a value beyond 1e100 in magnitude.
std::string line_chart_svg(const Chart& chart);

}  // namespace attend
