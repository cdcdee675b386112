#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "attend/pictures/alignment.h"
#include "attend/pictures/grid-inl.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/render.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr int kLevels = 64;  // steps of the colour scale; neighbours are hardly distinguishable
constexpr int kHatched = kLevels;
constexpr double kStrong = 0.55;  // above, the other text colour is more readable, in both schemes
constexpr double kFaint = 0.05;   // below, numbers are pale
constexpr double kPadding = 24;
constexpr double kTitleHeight = 34;
constexpr double kLegendHeight = 40;
constexpr double kLegendWidth = 2 * kLevels;
constexpr int kLabelColumns = 24;
constexpr double kMapSide = 960;        // side of a large map, unless cells would be below a pixel
constexpr size_t kPathBytes = 1 << 20;  // the XML parser rejects attributes above 10 MB

// Enlarges the cells of the shorter side so that its labels are readable.
double cell_side(int64_t count, int64_t largest) {
  const double even = std::clamp(std::floor(kMapSide / static_cast<double>(largest)), 1.0, 40.0);
  const double readable = std::floor(kMapSide / static_cast<double>(std::max<int64_t>(count, 1)));
  return std::max(even, std::min(14.0, readable));
}

bool is_hatched(const WeightGrid& grid) {
  return std::any_of(grid.values.begin(), grid.values.end(),
                     [](double value) { return !std::isfinite(value); });
}

std::string label(const std::string& token) { return shorten(visible_token(token), kLabelColumns); }

double widest_label(const std::vector<std::string>& tokens, double font) {
  double width = 0;
  for (const std::string& token : tokens) {
    width = std::max(width, estimated_width(label(token), font));
  }
  return width;
}

int64_t label_step(double cell) {
  constexpr double kLine = 11;
  return std::max<int64_t>(1, std::lround(std::ceil(kLine / cell)));
}

// Positions and sizes of the parts of the SVG, in pixels.
struct PictureLayout {
  double left, top;  // the map's corner
  double cell_width, cell_height;
  double width, height;        // the whole picture
  double font;                 // size of the labels
  double angle;                // rotation of the source labels: 0, -45 or -90 degrees
  int64_t label_every_column;  // every n-th token has a label
  int64_t label_every_row;
};

bool has_gaps(const PictureLayout& layout) {
  return std::min(layout.cell_width, layout.cell_height) >= 8;
}

bool has_values(const PictureLayout& layout) {
  return std::min(layout.cell_width, layout.cell_height) >= 30;
}

int level_of(double weight, double end) {
  if (!std::isfinite(weight)) return kHatched;
  return static_cast<int>(std::lround((kLevels - 1) * std::clamp(weight / end, 0.0, 1.0)));
}

std::string level_rules(Scheme scheme) {
  std::string rules;
  for (int level = 0; level < kLevels; ++level) {
    const double fraction = level / (kLevels - 1.0);
    rules += fmt::format(".l{}{{fill:{}}}", level, hex(scale_color(fraction, scheme)));
  }
  return rules;
}

std::string style() {
  return style_element(level_rules(Scheme::light) +
                           ".l64{fill:url(#hatch)}.hatch{fill:#e4e7eb}.bar{stroke:#9aa3ad}"
                           ".weak{fill:#1f2328}.faint{fill:#818b98}.strong{fill:#fff}",
                       level_rules(Scheme::dark) +
                           ".hatch{fill:#2d333b}.bar{stroke:#6b7480}"
                           ".weak{fill:#e6edf3}.faint{fill:#767e88}.strong{fill:#0d1117}");
}

// Rounds the corners of large cells.
void append_cell(std::string& path, double x, double y, double width, double height, double round) {
  auto out = std::back_inserter(path);
  if (round == 0) {
    fmt::format_to(out, "M{:g} {:g}h{:g}v{:g}h{:g}z", x, y, width, height, -width);
    return;
  }
  const double across = width - 2 * round;
  const double down = height - 2 * round;
  fmt::format_to(out,
                 "M{0:g} {1:g}h{2:g}a{4:g} {4:g} 0 0 1 {4:g} {4:g}v{3:g}a{4:g} {4:g} 0 0 1 -{4:g} "
                 "{4:g}h-{2:g}a{4:g} {4:g} 0 0 1 -{4:g} -{4:g}v-{3:g}a{4:g} {4:g} 0 0 1 {4:g} "
                 "-{4:g}z",
                 x + round, y, across, down, round);
}

void close_path(std::string& out, std::string& path, int level) {
  if (path.empty()) return;
  fmt::format_to(std::back_inserter(out), "<path class=\"l{}\" d=\"{}\"/>\n", level, path);
  path.clear();
}

// Uses one path per colour and one rectangle per run of equal cells, so that browsers can open maps
// of millions of cells.
std::string cells(const WeightGrid& grid, const PictureLayout& layout, double end) {
  const bool gaps = has_gaps(layout);
  const double gap = gaps ? 1 : 0;
  const double round = has_values(layout) ? 3 : 0;
  std::array<std::string, kLevels + 1> paths;
  std::string out = gaps ? "<g>\n" : "<g shape-rendering=\"crispEdges\">\n";
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t column = 0; column < grid.columns;) {
      const int level = level_of(grid.at(row, column), end);
      int64_t next = column + 1;
      while (!gaps && next < grid.columns && level_of(grid.at(row, next), end) == level) ++next;
      std::string& path = paths[static_cast<size_t>(level)];
      append_cell(path, layout.left + static_cast<double>(column) * layout.cell_width,
                  layout.top + static_cast<double>(row) * layout.cell_height,
                  static_cast<double>(next - column) * layout.cell_width - gap,
                  layout.cell_height - gap, round);
      if (path.size() > kPathBytes) close_path(out, path, level);
      column = next;
    }
  }
  for (int level = 0; level <= kLevels; ++level) {
    close_path(out, paths[static_cast<size_t>(level)], level);
  }
  return out + "</g>\n";
}

std::string_view class_of(double fraction) {
  return fraction > kStrong ? "strong" : fraction < kFaint ? "faint" : "weak";
}

std::string cell_values(const WeightGrid& grid, const PictureLayout& layout, double end) {
  if (!has_values(layout)) return "";
  std::string out = "<g font-size=\"11\" text-anchor=\"middle\">\n";
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t column = 0; column < grid.columns; ++column) {
      const double value = grid.at(row, column);
      const std::string text = std::isfinite(value) ? short_weight(value) : "";
      if (text.empty()) continue;
      fmt::format_to(std::back_inserter(out),
                     "<text x=\"{:g}\" y=\"{:g}\" class=\"{}\">{}</text>\n",
                     layout.left + (static_cast<double>(column) + 0.5) * layout.cell_width - 0.5,
                     layout.top + (static_cast<double>(row) + 0.5) * layout.cell_height + 3.5,
                     class_of(value / end), text);
    }
  }
  return out + "</g>\n";
}

std::string source_labels(const Alignment& alignment, const PictureLayout& layout) {
  std::string out = fmt::format("<g class=\"text\" font-size=\"{:g}\" text-anchor=\"{}\">\n",
                                layout.font, layout.angle == 0 ? "middle" : "start");
  // Shifts the baseline of a rotated label so that its middle line meets the column's.
  const double shift = layout.angle == 0 ? 0 : 0.36 * layout.font;
  const auto step = static_cast<size_t>(layout.label_every_column);
  for (size_t column = 0; column < alignment.source.size(); column += step) {
    const double x = layout.left + (static_cast<double>(column) + 0.5) * layout.cell_width - 0.5 +
                     (layout.angle == -45 ? shift / 2 : shift);
    const double y = layout.top - 8;
    const std::string turn =
        layout.angle == 0
            ? ""
            : fmt::format(" transform=\"rotate({:g} {:g} {:g})\"", layout.angle, x, y);
    fmt::format_to(std::back_inserter(out),
                   "<text x=\"{:g}\" y=\"{:g}\"{} data-column=\"{}\">{}</text>\n", x, y, turn,
                   column, escape_markup(label(alignment.source[column])));
  }
  return out + "</g>\n";
}

std::string target_labels(const Alignment& alignment, const PictureLayout& layout) {
  std::string out =
      fmt::format("<g class=\"text\" font-size=\"{:g}\" text-anchor=\"end\">\n", layout.font);
  const auto step = static_cast<size_t>(layout.label_every_row);
  for (size_t row = 0; row < alignment.target.size(); row += step) {
    const double y = layout.top + (static_cast<double>(row) + 0.5) * layout.cell_height;
    fmt::format_to(std::back_inserter(out),
                   "<text x=\"{:g}\" y=\"{:g}\" data-row=\"{}\">{}</text>\n", layout.left - 9,
                   y + 0.36 * layout.font, row, escape_markup(label(alignment.target[row])));
  }
  return out + "</g>\n";
}

std::string legend(const WeightGrid& grid, const PictureLayout& layout, double end) {
  const double y = layout.height - kPadding - 12;
  std::string out = "<g shape-rendering=\"crispEdges\">\n";
  const double left = layout.left + 14;
  for (int level = 0; level < kLevels; ++level) {
    out += fmt::format("<rect class=\"l{}\" x=\"{:g}\" y=\"{:g}\" width=\"2\" height=\"10\"/>",
                       level, left + 2 * level, y);
  }
  out += fmt::format(
      "\n</g>\n<g class=\"soft\" font-size=\"11\"><text x=\"{:g}\" y=\"{:g}\">0</text>"
      "<text x=\"{:g}\" y=\"{:g}\">{:g}</text>",
      layout.left, y + 9, left + kLegendWidth + 6, y + 9, end);
  if (is_hatched(grid)) {
    const double x = left + kLegendWidth + 36;
    out += fmt::format(
        "<rect class=\"l64\" x=\"{:g}\" y=\"{:g}\" width=\"16\" height=\"10\"/>"
        "<text x=\"{:g}\" y=\"{:g}\">not a number</text>",
        x, y, x + 22, y + 9);
  }
  return out + "</g>\n";
}

std::string title(const Alignment& alignment, const PictureLayout& layout) {
  if (alignment.title.empty()) return "";
  std::string text = visible_text(alignment.title);
  // 0.68 is the largest estimated width of a column.
  const double room = (layout.width - 2 * kPadding) / (0.68 * 16);
  if (estimated_width(text, 16) > layout.width - 2 * kPadding) {
    text = shorten(text, static_cast<int>(room));
  }
  return fmt::format(
      "<text class=\"text\" font-size=\"16\" font-weight=\"bold\" x=\"{:g}\" "
      "y=\"{:g}\">{}</text>\n",
      kPadding, kPadding + 14, escape_markup(text));
}

PictureLayout picture_layout(const Alignment& alignment, const WeightGrid& grid) {
  const int64_t largest = std::max<int64_t>({grid.rows, grid.columns, 1});
  PictureLayout layout{};
  layout.cell_width = cell_side(grid.columns, largest);
  layout.cell_height = cell_side(grid.rows, largest);
  layout.font = std::clamp(0.62 * std::min(layout.cell_width, layout.cell_height), 9.0, 14.0);
  layout.label_every_column = label_step(layout.cell_width);
  layout.label_every_row = label_step(layout.cell_height);

  const double source = widest_label(alignment.source, layout.font);
  if (source > layout.cell_width - 4) layout.angle = layout.cell_width < 18 ? -90 : -45;
  const double radians = -layout.angle * std::numbers::pi / 180;
  const double above = layout.font * (1 + std::cos(radians)) / 2 + source * std::sin(radians);
  double right = 0;  // end of the labels, from the map's left side
  for (size_t column = 0; layout.angle == -45 && column < alignment.source.size(); ++column) {
    right = std::max(right, (static_cast<double>(column) + 0.5) * layout.cell_width +
                                estimated_width(label(alignment.source[column]), layout.font) *
                                    std::cos(radians));
  }

  const double map_width = static_cast<double>(grid.columns) * layout.cell_width;
  const double map_height = static_cast<double>(grid.rows) * layout.cell_height;
  layout.left = kPadding + widest_label(alignment.target, layout.font) + 9;
  layout.top = kPadding + (alignment.title.empty() ? 0 : kTitleHeight) + above + 8;
  const double title_width =
      std::min(700.0, 1.08 * estimated_width(visible_text(alignment.title), 16));
  const double content = std::max({map_width, right, kLegendWidth + (is_hatched(grid) ? 150 : 50),
                                   title_width + kPadding - layout.left});
  layout.width = std::ceil(layout.left + content + kPadding);
  layout.height = std::ceil(layout.top + map_height + kLegendHeight + kPadding);
  layout.left = std::round(layout.left);
  layout.top = std::round(layout.top);
  return layout;
}

}  // namespace

std::string alignment_svg(const Alignment& alignment) {
  const WeightGrid& grid = checked_picture_grid(alignment);
  const PictureLayout layout = picture_layout(alignment, grid);
  const double end = scale_end(grid);
  std::string svg = svg_start(layout.width, layout.height, describe(alignment));
  svg += style();
  svg +=
      "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect class=\"hatch\" width=\"6\" height=\"6\"/>"
      "<path class=\"bar\" d=\"M0 0v6\" stroke-width=\"3\"/></pattern></defs>\n"
      "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n";
  svg += title(alignment, layout);
  svg += source_labels(alignment, layout) + target_labels(alignment, layout);
  svg += cells(grid, layout, end) + cell_values(grid, layout, end);
  if (grid.values.empty()) {
    svg += fmt::format("<text class=\"soft\" x=\"{:g}\" y=\"{:g}\">no weights</text>\n",
                       layout.left, layout.top + 14);
  }
  return svg + legend(grid, layout, end) + "</svg>\n";
}

std::string alignment_png(const Alignment& alignment) {
  return render_png(alignment_svg(alignment));
}

}  // namespace attend
