#include "attend/pictures/source_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attend/base/base64.h"
#include "attend/base/error.h"
#include "attend/pictures/grid-inl.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/render.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr int64_t max_pixels = 4096;
constexpr size_t max_targets = 100;
constexpr double padding = 24, gap = 20, label_height = 22;
constexpr double page_width = 960;      // maximum width of panels side by side
constexpr double strongest_tint = 0.8;  // opacity of the largest weight; the picture stays visible
constexpr double weakest = 0.01;        // share of the scale below which no weight is drawn

void check(const Alignment& alignment, const SourcePicture& picture) {
  if (picture.height < 1 || picture.width < 1 || picture.height > max_pixels ||
      picture.width > max_pixels)
    fail("[explain] the source is a picture of {} x {} pixels; 1 to {} a side are drawn",
         picture.width, picture.height, max_pixels);
  if (picture.rows * picture.columns != static_cast<int64_t>(alignment.source.size()))
    fail("[explain] the picture has {} x {} parts and the alignment {} source tokens", picture.rows,
         picture.columns, alignment.source.size());
  if (alignment.target.size() > max_targets)
    fail("[explain] {} target tokens are too many for a panel each (at most {}); write .json",
         alignment.target.size(), max_targets);
}

// Positions of the panels of one picture.
struct PanelLayout {
  double width, height;  // size of a panel without its label
  int64_t across;
  double left(int64_t panel) const {
    return padding + static_cast<double>(panel % across) * (width + gap);
  }
  double top(int64_t panel) const {
    const int64_t row = panel / across;
    return padding + static_cast<double>(row) * (height + label_height + gap) + label_height;
  }
};

PanelLayout panel_layout(const SourcePicture& picture, int64_t panels) {
  const auto width = static_cast<double>(picture.width);
  const auto height = static_cast<double>(picture.height);
  // If there is room, scales by a whole number, so that pixels stay equal squares.
  const double fitting = std::min(560 / width, 200 / height);
  const double scale = fitting >= 1 ? std::floor(fitting) : std::min(1.0, page_width / width);
  PanelLayout layout{width * scale, height * scale, 1};
  layout.across = std::clamp<int64_t>(
      static_cast<int64_t>((page_width + gap) / (layout.width + gap)), 1, panels);
  return layout;
}

std::string label(const std::string& text, double width) {
  return escape_markup(shorten(text, std::max(4, static_cast<int>(width / 8))));
}

// Draws the weights of target token `row` over its panel.
std::string overlay(const Alignment& alignment, const SourcePicture& picture,
                    const WeightGrid& grid, const PanelLayout& layout, int64_t row, double end) {
  const double width = layout.width / static_cast<double>(picture.columns);
  const double height = layout.height / static_cast<double>(picture.rows);
  const double left = layout.left(row + 1), top = layout.top(row + 1);
  std::string out;
  for (int64_t i = 0; i < grid.columns; ++i) {
    const double weight = grid.at(row, i);
    if (!std::isfinite(weight) || weight < weakest * end) continue;
    const int64_t below = i / picture.columns;
    fmt::format_to(std::back_inserter(out),
                   "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
                   "fill-opacity=\"{:.3f}\"><title>{}: {:.4f}</title></rect>\n",
                   left + static_cast<double>(i % picture.columns) * width,
                   top + static_cast<double>(below) * height, width, height,
                   strongest_tint * std::min(weight / end, 1.0),
                   escape_markup(visible_token(alignment.source[static_cast<size_t>(i)])), weight);
  }
  return out;
}

std::string legend(double left, double top, double end) {
  constexpr int steps = 64;
  std::string out = fmt::format(
      "<g shape-rendering=\"crispEdges\"><rect x=\"{:g}\" y=\"{:g}\" width=\"{}\" height=\"10\" "
      "fill=\"#000\"/>",
      left + 14, top, 2 * steps);
  for (int i = 0; i < steps; ++i)
    fmt::format_to(std::back_inserter(out),
                   "<rect class=\"heat\" x=\"{:g}\" y=\"{:g}\" width=\"2\" height=\"10\" "
                   "fill-opacity=\"{:.3f}\"/>",
                   left + 14 + 2 * i, top, strongest_tint * i / (steps - 1));
  return out + fmt::format(
                   "</g>\n<g class=\"soft\" font-size=\"11\"><text x=\"{:g}\" y=\"{:g}\">0</text>"
                   "<text x=\"{:g}\" y=\"{:g}\">{:g}</text></g>\n",
                   left, top + 9, left + 20 + 2 * steps, top + 9, end);
}

}  // namespace

std::string panels_svg(const Alignment& alignment, const SourcePicture& picture) {
  const WeightGrid& grid = checked_picture_grid(alignment);
  check(alignment, picture);
  const int64_t panels = grid.rows + 1;
  const PanelLayout layout = panel_layout(picture, panels);
  const double end = scale_end(grid);
  const double below = layout.top(panels - 1) + layout.height + 18;
  const double right = layout.left(layout.across - 1) + layout.width;
  std::string svg =
      svg_start(std::max(right, 220.0) + padding, below + 10 + padding, describe(alignment)) +
      style_element(".heat{fill:#ff8a1f}", "") +
      "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n";
  const std::string image = base64_text(picture.png);
  for (int64_t panel = 0; panel < panels; ++panel) {
    const std::string name = panel > 0
                                 ? visible_token(alignment.target[static_cast<size_t>(panel - 1)])
                             : alignment.title.empty() ? "source"
                                                       : visible_text(alignment.title);
    fmt::format_to(std::back_inserter(svg),
                   "<text class=\"{}\" font-size=\"14\" x=\"{:g}\" y=\"{:g}\">{}</text>\n"
                   "<image x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" "
                   "preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
                   "href=\"data:image/png;base64,{}\"/>\n",
                   panel > 0 ? "text" : "soft", layout.left(panel), layout.top(panel) - 7,
                   label(name, layout.width), layout.left(panel), layout.top(panel), layout.width,
                   layout.height, image);
    if (panel > 0)
      svg += "<g class=\"heat\" shape-rendering=\"crispEdges\">\n" +
             overlay(alignment, picture, grid, layout, panel - 1, end) + "</g>\n";
  }
  return svg + legend(padding, below, end) + "</svg>\n";
}

std::string panels_png(const Alignment& alignment, const SourcePicture& picture) {
  return render_png(panels_svg(alignment, picture));
}

}  // namespace attend
