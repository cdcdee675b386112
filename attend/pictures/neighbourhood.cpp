#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "attend/pictures/markup-inl.h"
#include "attend/pictures/neighbourhood-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend::internal {
namespace {

constexpr double kRing = 96;   // minimum distance of two rings
constexpr double kApart = 15;  // approximate distance of tokens in a ring
constexpr double kLabelFont = 12;
constexpr double kWeightFont = 10;
constexpr size_t kMaxWeights = 24;  // written next to the lines of the first token

// A token and its position.
struct RingToken {
  int64_t step = -1;  // steps from the first token; -1: not reached
  std::vector<size_t> children;
  double leaves = 1;
  double angle = 0, x = 0, y = 0;
};

struct Rings {
  std::vector<RingToken> tokens;
  std::vector<LayerGraph::Edge> edges;  // edges that contributed to the first token's vector
  int64_t last = 0;
  double radius = 0;
};

// The top layer shows what the first token attended to, the layer below what these attended to, and
// so on.
Rings rings_of(const LayerGraph& graph) {
  const size_t top = graph.levels.size() - 1;
  Rings rings;
  rings.tokens.resize(graph.levels[top].tokens.size());
  rings.tokens[0].step = 0;
  for (size_t level = top; level > 0; --level) {
    const auto step = static_cast<int64_t>(top - level);
    for (const LayerGraph::Edge& edge : graph.edges) {
      if (edge.upper != level || rings.tokens[static_cast<size_t>(edge.from)].step != step)
        continue;
      rings.edges.push_back(edge);
      RingToken& to = rings.tokens[static_cast<size_t>(edge.to)];
      if (to.step >= 0) continue;
      to.step = rings.last = step + 1;
      rings.tokens[static_cast<size_t>(edge.from)].children.push_back(static_cast<size_t>(edge.to));
    }
  }
  return rings;
}

double count_leaves(Rings& rings, size_t token) {
  RingToken& here = rings.tokens[token];
  double leaves = 0;
  for (const size_t other : here.children) leaves += count_leaves(rings, other);
  return here.leaves = std::max(leaves, 1.0);
}

// Each token gets a share of the circle in proportion to the leaves below it.
void place_tokens(Rings& rings, size_t token, double begin, double end, double ring) {
  RingToken& here = rings.tokens[token];
  here.angle = (begin + end) / 2;
  const double distance = static_cast<double>(here.step) * ring;
  here.x = rings.radius + distance * std::cos(here.angle);
  here.y = rings.radius + distance * std::sin(here.angle);
  for (const size_t other : here.children) {
    const double share = (end - begin) * rings.tokens[other].leaves / here.leaves;
    place_tokens(rings, other, begin, begin + share, ring);
    begin += share;
  }
}

void lay_out(Rings& rings, double margin) {
  constexpr double whole = 2 * std::numbers::pi;
  const double ring = std::max(kRing, kApart * count_leaves(rings, 0) / whole);
  rings.radius = ring * static_cast<double>(rings.last) + margin;
  place_tokens(rings, 0, 0, whole, ring);
}

std::string ring_lines(const Rings& rings) {
  std::string out = "<g class=\"edge\" fill=\"none\">\n";
  for (const LayerGraph::Edge& edge : rings.edges) {
    if (edge.from == edge.to) continue;
    const RingToken &from = rings.tokens[static_cast<size_t>(edge.from)],
                    &to = rings.tokens[static_cast<size_t>(edge.to)];
    const double strength = std::min(std::abs(edge.weight), 1.0);
    fmt::format_to(std::back_inserter(out),
                   "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke-opacity=\"{:.2f}\" "
                   "stroke-width=\"{:.1f}\"><title>{:.3f}</title></path>\n",
                   from.x, from.y, to.x, to.y, 0.1 + 0.9 * strength, 0.8 + 5 * strength,
                   edge.weight);
  }
  return out + "</g>\n";
}

// Weights of the top layer: at the lines of the first token, and its own weight below it.
std::string ring_weights(const Rings& rings, size_t top) {
  std::string out = fmt::format(
      "<g class=\"soft halo\" font-size=\"{:g}\" text-anchor=\"middle\">\n", kWeightFont);
  const bool few = rings.tokens[0].children.size() <= kMaxWeights;
  for (const LayerGraph::Edge& edge : rings.edges) {
    const bool own = edge.to == 0;
    if (edge.upper != top || edge.from != 0 || !(own || few)) continue;
    const RingToken& to = rings.tokens[static_cast<size_t>(edge.to)];
    const double share = own ? 0 : 0.62;
    fmt::format_to(std::back_inserter(out), "<text x=\"{:.1f}\" y=\"{:.1f}\">{:.2f}</text>\n",
                   rings.radius + share * (to.x - rings.radius),
                   rings.radius + share * (to.y - rings.radius) + (own ? 20 : 3), edge.weight);
  }
  return out + "</g>\n";
}

// Labels point away from the centre, and none is upside down.
std::string ring_label(const RingToken& token, const std::string& label) {
  const bool left = std::cos(token.angle) < 0;
  const double turned = token.angle * 180 / std::numbers::pi + (left ? 180 : 0);
  return fmt::format(
      "<text class=\"text halo\" transform=\"translate({:.1f} {:.1f}) rotate({:.1f})\" x=\"{}\" "
      "y=\"4\"{}>{}</text>\n",
      token.x, token.y, turned, left ? -8 : 8, left ? " text-anchor=\"end\"" : "", label);
}

}  // namespace

std::string neighbourhood_svg(const LayerGraph& graph, std::string (*label)(const std::string&),
                              const std::string& style) {
  Rings rings = rings_of(graph);
  const std::vector<std::string>& names = graph.levels.back().tokens;
  double margin = 30;
  for (const std::string& name : names)
    margin = std::max(margin, estimated_width(label(name), kLabelFont) + 24);
  lay_out(rings, margin);
  std::string tokens = fmt::format("<g font-size=\"{:g}\">\n", kLabelFont);
  for (size_t i = 0; i < names.size(); ++i) {
    const RingToken& token = rings.tokens[i];
    if (token.step < 0) continue;
    const std::string shown = escape_markup(label(names[i]));
    tokens += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", token.x,
                          token.y, i == 0 ? 6 : 3.5);
    tokens += i > 0 ? ring_label(token, shown)
                    : fmt::format(
                          "<text class=\"text halo\" text-anchor=\"middle\" x=\"{:.1f}\" "
                          "y=\"{:.1f}\">{}</text>\n",
                          token.x, token.y - 11, shown);
  }
  return svg_start(
             2 * rings.radius, 2 * rings.radius,
             fmt::format("attention of {} and its neighbours", escape_markup(label(names[0])))) +
         style + "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n" +
         ring_lines(rings) + ring_weights(rings, graph.levels.size() - 1) + tokens +
         "</g>\n</svg>\n";
}

}  // namespace attend::internal
