#include "attend/pictures/interval_panels.h"

#include <fmt/format.h>

#include <algorithm>

#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr double kRowHeight = 22, kPanelHead = 44, kNameWidth = 170, kPanelWidth = 250;
constexpr double kPictureMargin = 16;
constexpr int kPanelsAcross = 3;

std::string point_colors(Scheme scheme) {
  return fmt::format(".dot{{fill:{0}}}.span{{stroke:{0}}}.failed{{opacity:.45}}",
                     hex(scale_color(0.8, scheme)));
}

class DrawnPanel {
 public:
  DrawnPanel(const IntervalPanel& panel, double left, double top)
      : panel_(panel), left_(left), top_(top) {
    for (const IntervalLine& one : panel_.lines) {
      low_ = std::min({low_, one.low, one.other.value_or(0)});
      high_ = std::max({high_, one.high, one.other.value_or(0)});
    }
    if (high_ - low_ < 1e-9) high_ = low_ + 1;
  }

  std::string str() const {
    std::string out = fmt::format(
        "<text class=\"text\" x=\"{:g}\" y=\"{:g}\" font-size=\"13\" "
        "font-weight=\"bold\">{}</text>\n"
        "<text class=\"soft\" x=\"{:g}\" y=\"{:g}\" font-size=\"10\">{:.2f} to {:.2f}{}</text>\n",
        left_, top_ + 14, escape_markup(panel_.name), left_, top_ + 30, low_, high_,
        panel_.bar.empty() ? "" : fmt::format("; wanted {}", escape_markup(panel_.bar)));
    for (size_t i = 0; i < panel_.lines.size(); ++i) out += line(i);
    return out;
  }

  static double height(size_t lines) {
    return kPanelHead + static_cast<double>(lines) * kRowHeight + kPictureMargin;
  }

 private:
  double x(double value) const {
    const double width = kPanelWidth - 2 * kPictureMargin;
    return left_ + kNameWidth + width * (value - low_) / (high_ - low_);
  }

  std::string line(size_t index) const {
    const IntervalLine& one = panel_.lines[index];
    const std::string name = escape_markup(one.name);
    const double y = top_ + kPanelHead + static_cast<double>(index) * kRowHeight;
    std::string out = fmt::format(
        "<g class=\"{}\"><title>{}: {:.3f} ({:.3f} to {:.3f})</title>"
        "<text class=\"text\" x=\"{:g}\" y=\"{:g}\" font-size=\"11\">{}</text>"
        "<path class=\"span\" stroke-width=\"2\" d=\"M{:.1f} {:g}H{:.1f}\"/>"
        "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:g}\" r=\"4\"/>",
        one.passed ? "passed" : "failed", name, one.mean, one.low, one.high, left_, y + 4, name,
        x(one.low), y, x(one.high), x(one.mean), y);
    if (one.other)
      out += fmt::format("<path class=\"line\" d=\"M{:.1f} {:g}v12\"/>", x(*one.other), y - 6);
    return out + "</g>\n";
  }

  const IntervalPanel& panel_;
  double left_, top_;
  double low_ = 0, high_ = 0;
};

}  // namespace

std::string interval_panels_svg(const std::string& title,
                                const std::vector<IntervalPanel>& panels) {
  constexpr double width = kNameWidth + kPanelWidth;
  std::string body;
  double top = 52, row_height = 0;
  int across = 0;
  for (const IntervalPanel& panel : panels) {
    if (across == kPanelsAcross) {
      across = 0;
      top += row_height;
      row_height = 0;
    }
    body += DrawnPanel(panel, kPictureMargin + across * width, top).str();
    row_height = std::max(row_height, DrawnPanel::height(panel.lines.size()));
    ++across;
  }
  const std::string shown = visible_text(title);
  return svg_start(2 * kPictureMargin + kPanelsAcross * width, top + row_height, shown) +
         style_element(point_colors(Scheme::light), point_colors(Scheme::dark)) +
         fmt::format(
             "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n"
             "<text class=\"text\" x=\"{:g}\" y=\"30\" font-size=\"14\">{}</text>\n",
             kPictureMargin, escape_markup(shown)) +
         body + "</svg>\n";
}

}  // namespace attend
