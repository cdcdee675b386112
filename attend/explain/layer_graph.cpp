#include "attend/explain/layer_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "attend/base/error.h"
#include "attend/explain/theme-inl.h"
#include "attend/explain/visible_token-inl.h"

namespace attend {
namespace {

constexpr int64_t kMostTokens = 200;
constexpr size_t kMostLines = 6000;
constexpr double kLevelHeight = 92;
constexpr double kMargin = 20;
constexpr double kTokenFont = 12;
constexpr int kTokenLabel = 14;
constexpr double kDot = 3.5;

// Where the next map of a side of the network finds the vectors that it reads.
struct Side {
  std::optional<size_t> top = {};  // its highest level so far
  int64_t layer = 0;               // that level's
};

class Builder {
 public:
  void add(const LayerMap& map) {
    const bool pooling = map.site.part == NetworkPart::pooling;
    const bool answers = map.site.reads_source || pooling;
    Side& below = answers || map.site.part != NetworkPart::decoder ? source_ : answer_;
    if (!below.top || graph_.levels[*below.top].tokens.size() != map.columns.size())
      below.top = level(&below == &source_ ? "source" : "answer", map.columns);
    const size_t lower = *below.top;
    Side& above = answers ? answer_ : below;
    // A decoder's layer reads the answer, then the source: both are the same row of tokens.
    if (!above.top || !map.site.reads_source || above.layer != map.site.layer)
      above = {level(map.name, map.rows), map.site.layer};
    link(map, *above.top, lower);
  }

  LayerGraph finish() { return std::move(graph_); }

 private:
  size_t level(const std::string& name, const std::vector<std::string>& tokens) {
    graph_.levels.push_back({name, tokens});
    return graph_.levels.size() - 1;
  }

  void link(const LayerMap& map, size_t upper, size_t lower) {
    const at::Tensor mean = map.weights.to(at::kDouble).mean(0).contiguous();
    const double* weights = mean.data_ptr<double>();
    for (int64_t from = 0; from < mean.size(0); ++from)
      for (int64_t to = 0; to < mean.size(1); ++to)
        if (const double weight = *weights++; std::isfinite(weight) && weight != 0)
          graph_.edges.push_back({upper, lower, from, to, weight});
  }

  LayerGraph graph_;
  Side source_, answer_;
};

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
  std::stable_sort(drawn.begin(), drawn.end(), weaker);  // strong ones on top
  if (drawn.size() > kMostLines) drawn.erase(drawn.begin(), drawn.end() - kMostLines);
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
                   kMargin, y + 4, escape_markup(level.name));
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

LayerGraph layer_graph(const std::vector<LayerMap>& maps) {
  Builder builder;
  for (const LayerMap& map : maps) builder.add(map);
  return builder.finish();
}

std::string layer_graph_svg(const LayerGraph& graph) {
  for (const LayerGraph::Level& level : graph.levels)
    if (std::ssize(level.tokens) > kMostTokens)
      fail("{} has {} tokens; a graph shows at most {}: take --view model, or a .html file",
           level.name, level.tokens.size(), kMostTokens);
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
