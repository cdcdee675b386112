#include "attend/pictures/thumbnail.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attend/pictures/grid-inl.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr int kThumbnailLevels = 20;
constexpr double kCell = 17;
constexpr double kFont = 10.5;
constexpr double kThumbnailPadding = 6;
constexpr int kThumbnailLabel = 13;

std::string thumbnail_rules(Scheme scheme) {
  std::string rules;
  for (int level = 0; level < kThumbnailLevels; ++level)
    rules += fmt::format(".l{}{{fill:{}}}", level,
                         hex(scale_color(level / (kThumbnailLevels - 1.0), scheme)));
  return rules;
}

std::string thumbnail_style() {
  return style_element(thumbnail_rules(Scheme::light), thumbnail_rules(Scheme::dark));
}

int thumbnail_level(double weight) {
  if (std::isnan(weight)) return 0;
  return static_cast<int>(std::lround((kThumbnailLevels - 1) * std::clamp(weight, 0.0, 1.0)));
}

std::string thumbnail_label(const std::string& token) {
  return shorten(visible_token(token), kThumbnailLabel);
}

double widest_label(const std::vector<std::string>& tokens) {
  double width = 0;
  for (const std::string& token : tokens)
    width = std::max(width, estimated_width(thumbnail_label(token), kFont));
  return width;
}

// One path per level.
std::string cells(const WeightGrid& grid, double left, double top) {
  std::array<std::string, kThumbnailLevels> paths;
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column)
      paths[static_cast<size_t>(thumbnail_level(grid.at(row, column)))] += fmt::format(
          "M{0:g} {1:g}h{2:g}v{2:g}h-{2:g}z", left + static_cast<double>(column) * kCell,
          top + static_cast<double>(row) * kCell, kCell - 1);
  std::string out;
  for (size_t level = 0; level < paths.size(); ++level)
    if (!paths[level].empty())
      out += fmt::format("<path class=\"l{}\" d=\"{}\"/>\n", level, paths[level]);
  return out;
}

std::string labels(const Alignment& alignment, double left, double top) {
  std::string out = fmt::format("<g class=\"text\" font-size=\"{:g}\">\n", kFont);
  for (size_t column = 0; column < alignment.source.size(); ++column)
    out += fmt::format("<text transform=\"translate({:g} {:g}) rotate(-50)\">{}</text>\n",
                       left + (static_cast<double>(column) + 0.6) * kCell, top - 5,
                       escape_markup(thumbnail_label(alignment.source[column])));
  out += "</g>\n<g class=\"text\" text-anchor=\"end\" ";
  out += fmt::format("font-size=\"{:g}\">\n", kFont);
  for (size_t row = 0; row < alignment.target.size(); ++row)
    out += fmt::format("<text x=\"{:g}\" y=\"{:g}\">{}</text>\n", left - 5,
                       top + (static_cast<double>(row) + 0.5) * kCell + 0.34 * kFont,
                       escape_markup(thumbnail_label(alignment.target[row])));
  return out + "</g>\n";
}

struct ThumbnailLayout {
  double left, top, width, height;
};

ThumbnailLayout thumbnail_layout(const Alignment& alignment, const WeightGrid& grid) {
  constexpr double kSine = 0.766, kCosine = 0.643;  // angle: 50 degrees
  const double left = std::round(kThumbnailPadding + widest_label(alignment.target) + 5);
  const double top = std::round(kThumbnailPadding + widest_label(alignment.source) * kSine + kFont);
  double right = static_cast<double>(grid.columns) * kCell;
  for (size_t column = 0; column < alignment.source.size(); ++column)
    right = std::max(
        right, (static_cast<double>(column) + 0.6) * kCell + kFont / 2 +
                   estimated_width(thumbnail_label(alignment.source[column]), kFont) * kCosine);
  return {left, top, left + right + kThumbnailPadding,
          top + static_cast<double>(grid.rows) * kCell + kThumbnailPadding};
}

constexpr std::string_view kThumbnailPage =
    "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n";

}  // namespace

std::string thumbnail_svg(const Alignment& alignment) {
  const WeightGrid& grid = checked_picture_grid(alignment);
  const auto [left, top, width, height] = thumbnail_layout(alignment, grid);
  return svg_start(width, height, describe(alignment)) + thumbnail_style() +
         std::string(kThumbnailPage) + labels(alignment, left, top) + cells(grid, left, top) +
         "</svg>\n";
}

std::string thumbnails_svg(const std::vector<Alignment>& maps, int64_t columns) {
  constexpr double kHeading = 22;
  double x = 0, y = 0, row_height = 0, width = 0;
  std::string body;
  for (size_t i = 0; i < maps.size(); ++i) {
    const WeightGrid& grid = checked_picture_grid(maps[i]);
    const ThumbnailLayout layout = thumbnail_layout(maps[i], grid);
    if (i > 0 && static_cast<int64_t>(i) % columns == 0) {
      x = 0;
      y += row_height;
      row_height = 0;
    }
    body += fmt::format(
        "<g transform=\"translate({:g} {:g})\">\n<text class=\"text\" x=\"{:g}\" y=\"15\" "
        "font-size=\"12\" font-weight=\"bold\">{}</text>\n<g transform=\"translate(0 {:g})\">\n",
        x, y, kThumbnailPadding, escape_markup(visible_text(maps[i].title)), kHeading);
    body += labels(maps[i], layout.left, layout.top) + cells(grid, layout.left, layout.top) +
            "</g>\n</g>\n";
    x += layout.width;
    width = std::max(width, x);
    row_height = std::max(row_height, layout.height + kHeading);
  }
  return svg_start(width, y + row_height, fmt::format("{} attention maps", maps.size())) +
         thumbnail_style() + std::string(kThumbnailPage) + body + "</svg>\n";
}

std::string thumbnail_legend_svg() {
  std::string svg = svg_start(260, 30, "weights from 0 to 1") + thumbnail_style() +
                    "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n"
                    "<g class=\"text\" font-size=\"11\"><text x=\"8\" y=\"19\">weight 0</text>"
                    "<text x=\"246\" y=\"19\">1</text></g>\n";
  for (int level = 0; level < kThumbnailLevels; ++level)
    svg += fmt::format("<path class=\"l{}\" d=\"M{:g} 9h9v12h-9z\"/>\n", level, 62 + 9.0 * level);
  return svg + "</svg>\n";
}

}  // namespace attend
