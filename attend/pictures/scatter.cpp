#include "attend/pictures/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"
#include "attend/pictures/weight_disc-inl.h"

namespace attend {
namespace {

constexpr double side = 400;  // pixels, of the square that holds the points
constexpr double edge = 48;
constexpr double point_radius = 7;

struct ScatterAxis {
  double low = 0, high = 0;

  // From 0 to 1. Halves do not overflow where the numbers are far apart.
  double share(double value) const {
    return high > low ? (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
  }
};

ScatterAxis axis_of(const std::vector<Scatter::Point>& points, double Scatter::Point::*number) {
  if (points.empty()) return {};
  const auto [low, high] = std::minmax_element(
      points.begin(), points.end(), [&](const Scatter::Point& one, const Scatter::Point& other) {
        return one.*number < other.*number;
      });
  return {*low.*number, *high.*number};
}

std::string frame_and_ends(const ScatterAxis& x, const ScatterAxis& y) {
  const double far = edge + side, below = far + point_radius;
  return fmt::format(
      "<path class=\"line\" fill=\"none\" d=\"M{0:g} {0:g}V{1:g}H{1:g}\"/>\n"
      "<g class=\"soft\" font-size=\"12\">"
      "<text x=\"{0:g}\" y=\"{2:g}\">{3:.4g}</text>"
      "<text x=\"{1:g}\" y=\"{2:g}\" text-anchor=\"end\">{4:.4g}</text>"
      "<text x=\"{5:g}\" y=\"{1:g}\" text-anchor=\"end\">{6:.4g}</text>"
      "<text x=\"{5:g}\" y=\"{7:g}\" text-anchor=\"end\">{8:.4g}</text></g>\n",
      edge - point_radius, far + point_radius, below + 16, x.low, x.high, edge - 2 * point_radius,
      y.low, edge + 4, y.high);
}

}  // namespace

std::string scatter_svg(const Scatter& scatter) {
  if (std::ssize(scatter.points) > most_scattered_points)
    fail("there are {} points; a scatter shows at most {}", scatter.points.size(),
         most_scattered_points);
  const ScatterAxis x = axis_of(scatter.points, &Scatter::Point::x);
  const ScatterAxis y = axis_of(scatter.points, &Scatter::Point::y);
  std::string out =
      svg_start(side + 2 * edge, side + 2 * edge,
                fmt::format("{} points and their weights", scatter.points.size())) +
      style_element(weight_disc_rules(Scheme::light), weight_disc_rules(Scheme::dark)) +
      "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n";
  if (!scatter.title.empty())
    out += fmt::format("<text class=\"soft\" x=\"{:g}\" y=\"24\">{}</text>\n", edge,
                       escape_markup(visible_text(scatter.title)));
  out += frame_and_ends(x, y);
  double largest = 0;
  for (const Scatter::Point& point : scatter.points)
    if (std::isfinite(point.weight)) largest = std::max(largest, point.weight);
  for (const Scatter::Point& point : scatter.points)
    out += weight_disc(edge + side * x.share(point.x), edge + side * (1 - y.share(point.y)),
                       point_radius, point.weight, largest, visible_text(point.label)) +
           '\n';
  return out + "</svg>\n";
}

}  // namespace attend
