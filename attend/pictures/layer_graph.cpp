#include "attend/pictures/layer_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/neighbourhood-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr int64_t kMaxTokens = 200;
constexpr size_t kMaxLines = 6000;
constexpr double kLevelHeight = 92;
constexpr double kMargin = 20;
constexpr double kTokenFont = 12;
constexpr int kTokenLabel = 14;
constexpr double kDot = 3.5;

struct GraphPicture {
  double left = 0, step = 0, width = 0, height = 0;

  double x(int64_t token) const { return left + (static_cast<double>(token) + 0.5) * step; }
  double y(size_t level) const {
    return height - kMargin - 26 - static_cast<double>(level) * kLevelHeight;
  }
};

std::string token_label(const std::string& token) {
  return shorten(visible_token(token), kTokenLabel);
}

GraphPicture layout_of(const LayerGraph& graph) {
  double name = 0, token = 26;
  size_t longest = 0;
  for (const LayerGraph::Level& level : graph.levels) {
    name = std::max(name, estimated_width(level.name, kTokenFont));
    longest = std::max(longest, level.tokens.size());
    for (const std::string& each : level.tokens)
      token = std::max(token, estimated_width(token_label(each), kTokenFont) + 10);
  }
  GraphPicture picture{.left = kMargin + name + 16, .step = token};
  picture.width = picture.left + static_cast<double>(longest) * token + kMargin;
  picture.height = 2 * kMargin + 40 +
                   kLevelHeight * static_cast<double>(std::max<size_t>(graph.levels.size(), 1) - 1);
  return picture;
}

std::string graph_lines(const LayerGraph& graph, const GraphPicture& picture) {
  std::vector<LayerGraph::Edge> drawn = graph.edges;
  const auto weaker = [](const auto& a, const auto& b) {
    return std::abs(a.weight) < std::abs(b.weight);
  };
  std::stable_sort(drawn.begin(), drawn.end(), weaker);  // strong ones are drawn last
  if (drawn.size() > kMaxLines) drawn.erase(drawn.begin(), drawn.end() - kMaxLines);
  std::string out = "<g class=\"edge\" fill=\"none\">\n";
  for (const LayerGraph::Edge& edge : drawn) {
    const double strength = std::min(std::abs(edge.weight), 1.0);
    if (strength < 0.01) continue;
    fmt::format_to(
        std::back_inserter(out),
        "<path d=\"M{:g} {:g}L{:g} {:g}\" stroke-opacity=\"{:.2f}\" stroke-width=\"{:.1f}\"/>\n",
        picture.x(edge.from), picture.y(edge.upper), picture.x(edge.to), picture.y(edge.lower),
        strength, 0.6 + 2.4 * strength);
  }
  return out + "</g>\n";
}

std::string graph_levels(const LayerGraph& graph, const GraphPicture& picture) {
  std::string out = fmt::format("<g font-size=\"{:g}\" text-anchor=\"middle\">\n", kTokenFont);
  const auto end = std::back_inserter(out);
  for (size_t i = 0; i < graph.levels.size(); ++i) {
    const LayerGraph::Level& level = graph.levels[i];
    const double y = picture.y(i);
    fmt::format_to(end,
                   "<text class=\"soft\" text-anchor=\"start\" x=\"{:g}\" y=\"{:g}\">{}</text>\n",
                   kMargin, y + 4, escape_markup(visible_text(level.name)));
    for (size_t t = 0; t < level.tokens.size(); ++t) {
      const double x = picture.x(static_cast<int64_t>(t));
      fmt::format_to(end,
                     "<circle class=\"dot\" cx=\"{0:g}\" cy=\"{1:g}\" r=\"{2:g}\"/>"
                     "<text class=\"text halo\" x=\"{0:g}\" y=\"{3:g}\">{4}</text>\n",
                     x, y, kDot, y + 17, escape_markup(token_label(level.tokens[t])));
    }
  }
  return out + "</g>\n";
}

std::string graph_style() {
  const auto rules = [](Scheme scheme, std::string_view page) {
    const std::string strong = hex(scale_color(scheme == Scheme::light ? 0.75 : 0.8, scheme));
    return fmt::format(
        ".edge{{stroke:{0}}}.dot{{fill:{0}}}.halo{{paint-order:stroke;stroke:{1};"
        "stroke-width:4px;stroke-linejoin:round}}",
        strong, page);
  };
  return style_element(rules(Scheme::light, "#fff"), rules(Scheme::dark, "#0d1117"));
}

}  // namespace

std::string layer_graph_svg(const LayerGraph& graph) {
  for (const LayerGraph::Level& level : graph.levels)
    if (std::ssize(level.tokens) > kMaxTokens)
      fail("{} has {} tokens; a graph shows at most {}: take --view model, or a .html file",
           level.name, level.tokens.size(), kMaxTokens);
  if (graph.around_first) return internal::neighbourhood_svg(graph, token_label, graph_style());
  const GraphPicture picture = layout_of(graph);
  return svg_start(picture.width, picture.height,
                   fmt::format("attention of {} rows of tokens", graph.levels.size())) +
         graph_style() + "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n" +
         graph_lines(graph, picture) + graph_levels(graph, picture) + "</svg>\n";
}

AttentionGraph with_named_nodes(const LayerGraph& graph) {
  AttentionGraph named;
  named.title = "attention of all layers";
  std::vector<int64_t> first;
  for (const LayerGraph::Level& level : graph.levels) {
    first.push_back(std::ssize(named.nodes));
    for (const std::string& token : level.tokens)
      named.nodes.push_back(fmt::format("{}: {}", level.name, token));
  }
  for (const LayerGraph::Edge& edge : graph.edges)
    named.edges.push_back(
        {first[edge.upper] + edge.from, first[edge.lower] + edge.to, edge.weight});
  return named;
}

}  // namespace attend
