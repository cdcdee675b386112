#include "attend/pictures/points_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr double longer_side = 400;  // pixels
constexpr double shortest_side = 60;
constexpr double point_radius = 7;
constexpr double points_margin = 56;
constexpr double points_title = 24;
constexpr double points_font = 12;
constexpr double max_place = 1e100;

// Range of the coordinates, and its frame in the drawing.
struct PointsFrame {
  double left = std::numeric_limits<double>::infinity(), right = -left;
  double low = left, high = -left;
  double scale = 1;  // pixels per unit
  double x = points_margin, y = points_margin, width = 0, height = 0;

  double across(double place) const {
    return x + width / 2 + scale * (place - left / 2 - right / 2);
  }
  double down(double place) const { return y + height / 2 - scale * (place - low / 2 - high / 2); }
};

PointsFrame frame_of(const PointsDrawing& drawing) {
  PointsFrame frame;
  for (const PointsDrawing::Point& point : drawing.points) {
    for (const double place : {point.x, point.y})
      if (!(std::abs(place) <= max_place))
        fail("a point is at {:g}; a drawing shows places between -1e100 and 1e100", place);
    frame.left = std::min(frame.left, point.x);
    frame.right = std::max(frame.right, point.x);
    frame.low = std::min(frame.low, point.y);
    frame.high = std::max(frame.high, point.y);
  }
  const double across = frame.right - frame.left, up = frame.high - frame.low;
  const double longer = std::max(across, up);
  // Points at one position have no extent.
  frame.scale = longer > 0 ? longer_side / longer : 1;
  frame.width = std::max(frame.scale * across, shortest_side);
  frame.height = std::max(frame.scale * up, shortest_side);
  if (!drawing.title.empty()) frame.y += points_title;
  return frame;
}

std::string points_style() {
  const auto rules = [](Scheme scheme) {
    return fmt::format(".mark{{fill:{}}}",
                       hex(scale_color(scheme == Scheme::light ? 0.75 : 0.6, scheme)));
  };
  return style_element(rules(Scheme::light), rules(Scheme::dark));
}

// Labels the smallest and largest coordinate of each axis at the edges of the frame.
std::string frame_labels(const PointsFrame& frame) {
  const auto label = [](double x, double y, const char* anchor, double place) {
    return fmt::format(
        "<text class=\"soft\" font-size=\"{:g}\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">"
        "{:.4g}</text>\n",
        points_font, anchor, x, y, place);
  };
  const double gap = point_radius + 6;
  const double left = frame.across(frame.left), right = frame.across(frame.right);
  const double below = frame.y + frame.height + gap + points_font, label_right = frame.x - gap;
  std::string out = label(left, below, "middle", frame.left);
  if (frame.right > frame.left) out += label(right, below, "middle", frame.right);
  out += label(label_right, frame.down(frame.low) + 4, "end", frame.low);
  if (frame.high > frame.low)
    out += label(label_right, frame.down(frame.high) + 4, "end", frame.high);
  return out;
}

}  // namespace

std::string points_svg(const PointsDrawing& drawing) {
  if (drawing.points.empty() || std::ssize(drawing.points) > max_drawn_points)
    fail("there are {} points; a drawing shows 1 to {}", drawing.points.size(), max_drawn_points);
  const PointsFrame frame = frame_of(drawing);
  const std::string title = visible_text(drawing.title);
  const double width = std::max(frame.x + frame.width + points_margin,
                                estimated_width(title, points_font) + 2 * points_margin);
  std::string out = svg_start(width, frame.y + frame.height + points_margin,
                              fmt::format("{} points and their weights", drawing.points.size())) +
                    points_style() +
                    "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n";
  if (!title.empty())
    out += fmt::format("<text class=\"soft\" x=\"{:g}\" y=\"{:g}\">{}</text>\n", points_margin,
                       points_title + 6, escape_markup(title));
  out += fmt::format(
      "<rect class=\"line\" fill=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"/>\n",
      frame.x - point_radius - 2, frame.y - point_radius - 2, frame.width + 2 * (point_radius + 2),
      frame.height + 2 * (point_radius + 2));
  out += frame_labels(frame);
  double largest = 0;
  for (const PointsDrawing::Point& point : drawing.points)
    if (std::isfinite(point.weight)) largest = std::max(largest, point.weight);
  for (const PointsDrawing::Point& point : drawing.points) {
    const bool is_drawn = largest > 0 && std::isfinite(point.weight);
    out += fmt::format(
        "<circle class=\"page line\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:g}\"/>"
        "<circle class=\"mark\" fill-opacity=\"{3:.3f}\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" "
        "r=\"{2:g}\"><title>{4:.6g}, {5:.6g}: {6:.3g}</title></circle>\n",
        frame.across(point.x), frame.down(point.y), point_radius,
        is_drawn ? std::max(point.weight / largest, 0.0) : 0, point.x, point.y, point.weight);
  }
  return out + "</svg>\n";
}

}  // namespace attend
