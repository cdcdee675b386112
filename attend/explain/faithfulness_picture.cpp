#include <algorithm>
#include <cmath>

#include "attend/explain/faithfulness.h"
#include "attend/explain/theme-inl.h"
#include "attend/explain/visible_token-inl.h"

namespace attend {
namespace {

constexpr double kRowHeight = 22, kPanelHead = 44, kNameWidth = 170, kPanelWidth = 250;
constexpr double kPictureMargin = 16;
constexpr int kPanelsAcross = 3;

std::string point_colors(Scheme scheme) {
  return fmt::format(".dot{{fill:{0}}}.span{{stroke:{0}}}.failed{{opacity:.45}}",
                     hex(scale_color(0.8, scheme)));
}

// One figure: a line a method, with its interval and, where it is compared with another, a tick.
class FigurePanel {
 public:
  FigurePanel(const std::vector<FaithfulnessFigure>& figures, double left, double top)
      : figures_(figures), left_(left), top_(top) {
    for (const FaithfulnessFigure& one : figures_) {
      low_ = std::min({low_, one.low, one.other});
      high_ = std::max({high_, one.high, one.other});
    }
    if (high_ - low_ < 1e-9) high_ = low_ + 1;
  }

  std::string str() const {
    std::string out = fmt::format(
        "<text class=\"text\" x=\"{:g}\" y=\"{:g}\" font-size=\"13\" "
        "font-weight=\"bold\">{}</text>\n"
        "<text class=\"soft\" x=\"{:g}\" y=\"{:g}\" font-size=\"10\">{:.2f} to {:.2f}{}</text>\n",
        left_, top_ + 14, figures_[0].figure->name, left_, top_ + 30, low_, high_,
        *figures_[0].figure->bar == 0 ? "" : fmt::format("; wanted {}", figures_[0].figure->bar));
    for (size_t i = 0; i < figures_.size(); ++i) out += line(i);
    return out;
  }

  static double height(size_t methods) {
    return kPanelHead + static_cast<double>(methods) * kRowHeight + kPictureMargin;
  }

 private:
  double x(double value) const {
    const double width = kPanelWidth - 2 * kPictureMargin;
    return left_ + kNameWidth + width * (value - low_) / (high_ - low_);
  }

  std::string line(size_t index) const {
    const FaithfulnessFigure& one = figures_[index];
    const double y = top_ + kPanelHead + static_cast<double>(index) * kRowHeight;
    std::string out = fmt::format(
        "<g class=\"{}\"><title>{}: {:.3f} ({:.3f} to {:.3f})</title>"
        "<text class=\"text\" x=\"{:g}\" y=\"{:g}\" font-size=\"11\">{}</text>"
        "<path class=\"span\" stroke-width=\"2\" d=\"M{:.1f} {:g}H{:.1f}\"/>"
        "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:g}\" r=\"4\"/>",
        one.passed ? "passed" : "failed", one.method->name, one.mean, one.low, one.high, left_,
        y + 4, one.method->name, x(one.low), y, x(one.high), x(one.mean), y);
    if (one.figure->compares)
      out += fmt::format("<path class=\"line\" d=\"M{:.1f} {:g}v12\"/>", x(one.other), y - 6);
    return out + "</g>\n";
  }

  const std::vector<FaithfulnessFigure>& figures_;
  double left_, top_;
  double low_ = 0, high_ = 0;
};

}  // namespace

std::string faithfulness_svg(const Faithfulness& measured, const std::string& title) {
  constexpr double panel = kNameWidth + kPanelWidth;
  std::string body;
  double top = 52, row_height = 0;
  int across = 0;
  for (const FigureRow& row : figure_table()) {
    std::vector<FaithfulnessFigure> own;
    for (const FaithfulnessFigure& figure : measured.figures)
      if (figure.figure == &row && figure.examples > 0) own.push_back(figure);
    if (own.empty()) continue;
    if (across == kPanelsAcross) {
      across = 0;
      top += row_height;
      row_height = 0;
    }
    body += FigurePanel(own, kPictureMargin + across * panel, top).str();
    row_height = std::max(row_height, FigurePanel::height(own.size()));
    ++across;
  }
  const std::string what =
      fmt::format("{}: mean of {} answers, 95 % intervals; pale: missed; tick: compared with",
                  title, measured.examples);
  return svg_start(2 * kPictureMargin + kPanelsAcross * panel, top + row_height, what) +
         style_element(point_colors(Scheme::light), point_colors(Scheme::dark)) +
         fmt::format(
             "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n"
             "<text class=\"text\" x=\"{:g}\" y=\"30\" font-size=\"14\">{}</text>\n",
             kPictureMargin, escape_markup(what)) +
         body + "</svg>\n";
}

}  // namespace attend
