#include "attend/pictures/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr double kChartPadding = 20;
constexpr double kTickSize = 12;
constexpr size_t kMaximumSeries = 24;
constexpr size_t kMaximumPoints = 1'000'000;
constexpr double kMaximumValue = 1e100;  // keeps ranges and their squares finite
constexpr size_t kMarkedPoints = 60;

// Distinguishable by lightness as well as by hue, for colour-blind readers.
constexpr std::array<std::string_view, 6> kLight = {"#0b62c4", "#d1580f", "#1a8a5a",
                                                    "#8e44ad", "#a67c00", "#57606a"};
constexpr std::array<std::string_view, 6> kDark = {"#5aa9ff", "#ff9d5c", "#4fd19a",
                                                   "#cf9bf0", "#e3c34a", "#aab4bf"};
// When the colours are used up, dashes distinguish lines.
constexpr std::array<std::string_view, 4> kDashes = {"", "7 4", "2 4", "10 3 2 3"};

struct ChartAxis {
  double low = 0;
  double high = 1;
  double step = 0.2;
  std::vector<double> ticks;
};

// 1, 2 or 5 times a power of ten, about `count` of them over the range.
double tick_step(double range, int count) {
  const double rough = range / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (rough <= step * power * (1 + 1e-9)) return step * power;
  }
  return 10 * power;
}

// `whole` widens the range to full steps; otherwise an end only moves to a tick nearby.
ChartAxis make_axis(double low, double high, int count, bool whole) {
  const double size = std::max({std::abs(low), std::abs(high), 1e-100});
  // A range of a few units in the last place has no distinguishable ticks.
  if (high - low <= 1e-9 * size) {
    low -= low == 0 ? 0 : 0.5 * size;
    high += high == 0 ? 1 : 0.5 * size;
  }
  ChartAxis axis;
  axis.step = tick_step(high - low, count);
  axis.low = std::floor(low / axis.step + 1e-9) * axis.step;
  axis.high = std::ceil(high / axis.step - 1e-9) * axis.step;
  if (!whole && low - axis.low > 0.25 * axis.step) axis.low = low;
  if (!whole && axis.high - high > 0.25 * axis.step) axis.high = high;
  const double first = std::ceil(axis.low / axis.step - 1e-9);
  const double last = std::floor(axis.high / axis.step + 1e-9);
  for (double index = first; index <= last; ++index) axis.ticks.push_back(index * axis.step);
  return axis;
}

std::string tick_label(const ChartAxis& axis, double value, bool percent) {
  const double factor = percent ? 100 : 1;
  const double step = axis.step * factor;
  const double size = std::max(std::abs(axis.low), std::abs(axis.high)) * factor;
  if (size >= 1e6 || step < 1e-5) return fmt::format("{:g}{}", value * factor, percent ? " %" : "");
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  const double shown = std::abs(value) < axis.step / 2 ? 0 : value * factor;
  return fmt::format("{:.{}f}{}", shown, digits, percent ? " %" : "");
}

std::string y_label(const Chart& chart, const ChartAxis& axis, double value) {
  if (chart.y_powers_of_ten) return fmt::format("{:.6g}", std::pow(10, value));
  return tick_label(axis, value, chart.y_as_percent);
}

// Fractional logarithms are not round numbers.
void keep_whole(std::vector<double>& ticks) {
  std::erase_if(ticks, [](double tick) { return std::abs(tick - std::round(tick)) > 1e-9; });
}

struct Frame {
  ChartAxis x, y;
  double left, top, right, bottom;
  double px(double value) const {
    return left + (value - x.low) / (x.high - x.low) * (right - left);
  }
  double py(double value) const {
    return bottom - (value - y.low) / (y.high - y.low) * (bottom - top);
  }
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!std::isfinite(value)) return;
    if (std::abs(value) > kMaximumValue) {
      fail("[line_chart] value {} is out of the range that a chart can show (+-1e100)", value);
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool drawn(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

bool has_band(const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.low) && std::isfinite(point.high);
}

void check(const Chart& chart) {
  for (const double side : {chart.width, chart.height}) {
    if (!(side >= 200 && side <= 4000)) {
      fail("[line_chart] the chart is {} x {} pixels; each side must be 200 to 4000", chart.width,
           chart.height);
    }
  }
  if (chart.series.size() > kMaximumSeries) {
    fail("[line_chart] {} series; at most {} are distinguishable", chart.series.size(),
         kMaximumSeries);
  }
  size_t points = 0;
  for (const ChartSeries& series : chart.series) points += series.points.size();
  if (points > kMaximumPoints) {
    fail("[line_chart] {} points; at most {}, draw every n-th", points, kMaximumPoints);
  }
}

// Distributes the series over rows of the legend that fit into the width.
std::vector<std::vector<size_t>> legend_rows(const Chart& chart, double width) {
  std::vector<std::vector<size_t>> rows;
  double used = 0;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const double entry = 52 + estimated_width(shorten(visible_text(chart.series[i].name), 40), 12);
    if (rows.empty() || used + entry > width) {
      rows.emplace_back();
      used = 0;
    }
    rows.back().push_back(i);
    used += entry;
  }
  return rows;
}

Frame make_frame(const Chart& chart, size_t legend_lines) {
  Range x, y;
  if (chart.y_from_zero) y.add(0);
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (drawn(point)) {
        x.add(point.x);
        y.add(point.y);
      }
      if (has_band(point)) {
        x.add(point.x);
        y.add(point.low);
        y.add(point.high);
      }
    }
  }
  if (x.low > x.high) x = {0, 1};
  if (y.low > y.high || (y.low == 0 && y.high == 0)) y = {0, 1};
  Frame frame{};
  frame.y = make_axis(y.low, y.high, std::max(2, static_cast<int>(chart.height / 75)), true);
  frame.x = make_axis(x.low, x.high, std::max(2, static_cast<int>(chart.width / 75)), false);
  if (chart.x_powers_of_two) keep_whole(frame.x.ticks);
  if (chart.y_powers_of_ten) keep_whole(frame.y.ticks);
  double labels = 0;
  for (const double tick : frame.y.ticks) {
    labels = std::max(labels, estimated_width(y_label(chart, frame.y, tick), kTickSize));
  }
  frame.left = kChartPadding + labels + 10 + (chart.y_label.empty() ? 0 : 22);
  frame.right = chart.width - kChartPadding - 8;
  frame.top = kChartPadding + (chart.title.empty() ? 4 : 30) +
              20 * static_cast<double>(legend_lines) + (legend_lines > 0 ? 14 : 0);
  frame.bottom = chart.height - kChartPadding - 20 - (chart.x_label.empty() ? 0 : 22);
  return frame;
}

std::string axes(const Chart& chart, const Frame& frame) {
  std::string out = fmt::format("<g class=\"soft\" font-size=\"{:g}\">\n", kTickSize);
  auto end = std::back_inserter(out);
  for (const double tick : frame.y.ticks) {
    const double y = frame.py(tick);
    fmt::format_to(end,
                   "<path class=\"line\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>"
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                   frame.left, y, frame.right, frame.left - 8, y + 4,
                   y_label(chart, frame.y, tick));
  }
  fmt::format_to(end, "<path class=\"axis\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", frame.left,
                 frame.bottom, frame.right);
  for (const double tick : frame.x.ticks) {
    const double x = frame.px(tick);
    const std::string label = chart.x_powers_of_two ? fmt::format("{:.6g}", std::exp2(tick))
                                                    : tick_label(frame.x, tick, false);
    fmt::format_to(end,
                   "<path class=\"axis\" d=\"M{0:.1f} {1:.1f}v5\"/>"
                   "<text x=\"{0:.1f}\" y=\"{2:.1f}\" text-anchor=\"middle\">{3}</text>\n",
                   x, frame.bottom, frame.bottom + 19, label);
  }
  return out + "</g>\n";
}

std::string text(std::string_view attributes, double x, double y, const std::string& content,
                 double room, double size) {
  // 0.68 is the largest estimated width of a column.
  const std::string shown =
      estimated_width(content, size) <= room
          ? content
          : shorten(content, std::max(1, static_cast<int>(room / size / 0.68)));
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:g}\" {}>{}</text>\n", x, y,
                     size, attributes, escape_markup(shown));
}

std::string titles(const Chart& chart, const Frame& frame) {
  std::string out;
  const double across = frame.right - frame.left;
  if (!chart.title.empty()) {
    out += text("class=\"text\" font-weight=\"bold\"", frame.left, kChartPadding + 14,
                visible_text(chart.title), across / 1.08, 16);
  }
  if (!chart.x_label.empty()) {
    out += text("class=\"text\" text-anchor=\"middle\"", frame.left + across / 2, frame.bottom + 42,
                visible_text(chart.x_label), across, 13);
  }
  if (!chart.y_label.empty()) {
    const double middle = (frame.top + frame.bottom) / 2;
    out +=
        text(fmt::format("class=\"text\" text-anchor=\"middle\" transform=\"rotate(-90 {:.1f} "
                         "{:.1f})\"",
                         kChartPadding + 10, middle),
             kChartPadding + 10, middle, visible_text(chart.y_label), frame.bottom - frame.top, 13);
  }
  return out;
}

std::string stroke(size_t index) {
  const std::string_view dashes = kDashes[index / kLight.size() % kDashes.size()];
  const std::string dash = dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
  return fmt::format("class=\"s{}\"{}", index % kLight.size(), dash);
}

std::string legend(const Chart& chart, const Frame& frame,
                   const std::vector<std::vector<size_t>>& rows) {
  std::string out = "<g font-size=\"12\">\n";
  double y = kChartPadding + (chart.title.empty() ? 4 : 30) + 10;
  for (const std::vector<size_t>& row : rows) {
    double x = frame.left;
    for (const size_t index : row) {
      const std::string name = shorten(visible_text(chart.series[index].name), 40);
      out += fmt::format(
          "<path {} d=\"M{:.1f} {:.1f}h22\"/><text class=\"text\" x=\"{:.1f}\" y=\"{:.1f}\">{}"
          "</text>\n",
          stroke(index), x, y, x + 28, y + 4, escape_markup(name));
      x += 52 + estimated_width(name, 12);
    }
    y += 20;
  }
  return out + "</g>\n";
}

std::string band(const ChartSeries& series, size_t index, const Frame& frame) {
  std::string out;
  const auto& points = series.points;
  for (size_t first = 0; first < points.size();) {
    size_t last = first;
    while (last < points.size() && has_band(points[last])) ++last;
    if (last - first > 1) {
      std::string path;
      for (size_t i = first; i < last; ++i) {
        path += fmt::format("{}{:.1f} {:.1f}", i == first ? 'M' : 'L', frame.px(points[i].x),
                            frame.py(points[i].high));
      }
      for (size_t i = last; i-- > first;) {
        path += fmt::format("L{:.1f} {:.1f}", frame.px(points[i].x), frame.py(points[i].low));
      }
      out += fmt::format("<path class=\"f{} band\" d=\"{}z\"/>\n", index % kLight.size(), path);
    }
    first = last + 1;
  }
  return out;
}

std::string line(const ChartSeries& series, size_t index, const Frame& frame) {
  std::string path;
  std::string markers;
  const bool marked = series.points.size() <= kMarkedPoints;
  bool joined = false;
  for (const ChartPoint& point : series.points) {
    if (!drawn(point)) {
      joined = false;
      continue;
    }
    const double x = frame.px(point.x);
    const double y = frame.py(point.y);
    path += fmt::format("{}{:.1f} {:.1f}", joined ? 'L' : 'M', x, y);
    joined = true;
    if (!marked) continue;
    markers += fmt::format("<circle class=\"f{} dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"/>",
                           index % kLight.size(), x, y);
  }
  if (path.empty()) return "";
  return fmt::format("<path {} stroke-linecap=\"round\" d=\"{}\"/>\n{}\n", stroke(index), path,
                     markers);
}

std::string chart_style() {
  std::string light = ".axis{stroke:#8c959f}.dot{stroke:#fff}.band{fill-opacity:.16}";
  std::string dark = ".axis{stroke:#6b7480}.dot{stroke:#0d1117}.band{fill-opacity:.2}";
  for (size_t i = 0; i < kLight.size(); ++i) {
    light += fmt::format(
        ".s{0}{{stroke:{1};stroke-width:2.2px;fill:none;stroke-linejoin:round}}.f{0}{{fill:{1}}}",
        i, kLight[i]);
    dark += fmt::format(".s{0}{{stroke:{1}}}.f{0}{{fill:{1}}}", i, kDark[i]);
  }
  return style_element(light, dark);
}

}  // namespace

std::string line_chart_svg(const Chart& chart) {
  check(chart);
  const auto rows = legend_rows(chart, chart.width - 2 * kChartPadding - 60);
  const Frame frame = make_frame(chart, rows.size());
  if (frame.bottom - frame.top < 40 || frame.right - frame.left < 40) {
    fail("[line_chart] {} x {} pixels leave no room for the lines; make the chart larger",
         chart.width, chart.height);
  }
  const std::string description = chart.title.empty() ? "Line chart" : visible_text(chart.title);
  std::string svg = svg_start(chart.width, chart.height, description) + chart_style();
  svg += "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n";
  svg += axes(chart, frame) + titles(chart, frame) + legend(chart, frame, rows);
  for (size_t i = 0; i < chart.series.size(); ++i) svg += band(chart.series[i], i, frame);
  for (size_t i = 0; i < chart.series.size(); ++i) svg += line(chart.series[i], i, frame);
  return svg + "</svg>\n";
}

}  // namespace attend
