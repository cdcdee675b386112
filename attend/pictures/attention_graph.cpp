#include "attend/pictures/attention_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

void check_grid_of_graph(size_t labels, const WeightGrid& grid) {
  const auto count = static_cast<int64_t>(labels);
  if (grid.rows != count || grid.columns != count || grid.values.size() != labels * labels)
    fail("[attention graph] {} weights have shape [{}, {}]; {} tokens need [{}, {}]",
         grid.values.size(), grid.rows, grid.columns, count, count, count);
}

// Means of both directions.
std::vector<double> symmetric(const WeightGrid& grid) {
  std::vector<double> means;
  means.reserve(grid.values.size());
  for (int64_t i = 0; i < grid.rows; ++i)
    for (int64_t j = 0; j < grid.columns; ++j) means.push_back((grid.at(i, j) + grid.at(j, i)) / 2);
  return means;
}

// Returns the indices of the row's weights that become edges, in no order.
std::vector<size_t> chosen_keys(const double* row, size_t count, const GraphOptions& options) {
  std::vector<size_t> keys;
  keys.reserve(count);
  for (size_t j = 0; j < count; ++j)
    if (std::isfinite(row[j]) && row[j] > options.threshold) keys.push_back(j);
  const auto largest = static_cast<size_t>(options.largest);
  if (largest == 0 || keys.size() <= largest) return keys;
  std::stable_sort(keys.begin(), keys.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  keys.resize(largest);
  return keys;
}

void add_edges(const double* map, size_t count, int64_t head, const GraphOptions& options,
               std::vector<GraphEdge>& edges) {
  std::vector<bool> kept(count * count);
  for (size_t i = 0; i < count; ++i) {
    for (const size_t j : chosen_keys(map + i * count, count, options))
      kept[options.undirected ? std::min(i, j) * count + std::max(i, j) : i * count + j] = true;
  }
  for (size_t place = 0; place < kept.size(); ++place) {
    if (kept[place])
      edges.push_back({static_cast<int64_t>(place / count), static_cast<int64_t>(place % count),
                       map[place], head});
  }
}

std::string weight_text(double weight) { return fmt::format("{}", static_cast<float>(weight)); }

// Escapes quotes, backslashes, and the entities that Graphviz reads.
std::string dot_string(const std::string& label) {
  std::string result = "\"";
  for (const char c : visible_token(label)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
    if (c == '&') result += "amp;";
  }
  return result += '"';
}

}  // namespace

AttentionGraph attention_graph(const std::vector<std::string>& labels,
                               const std::vector<WeightGrid>& heads, const GraphOptions& options) {
  if (!(options.threshold >= 0) || options.largest < 0)
    fail("[attention graph] threshold is {}, largest {}; both must be 0 or more", options.threshold,
         options.largest);
  AttentionGraph graph{labels, {}, !options.undirected, std::ssize(heads), {}};
  int64_t head = 0;
  for (const WeightGrid& grid : heads) {
    check_grid_of_graph(labels.size(), grid);
    const std::vector<double> map = options.undirected ? symmetric(grid) : grid.values;
    add_edges(map.data(), labels.size(), head++, options, graph.edges);
  }
  return graph;
}

std::string graph_graphml(const AttentionGraph& graph) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
      "  <key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n"
      "  <key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n"
      "  <key id=\"head\" for=\"edge\" attr.name=\"head\" attr.type=\"int\"/>\n";
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "  <graph id=\"attention\" edgedefault=\"{}\">\n",
                 graph.directed ? "directed" : "undirected");
  if (!graph.title.empty())
    fmt::format_to(out, "    <desc>{}</desc>\n", escape_markup(visible_text(graph.title)));
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    fmt::format_to(out, "    <node id=\"n{}\"><data key=\"label\">{}</data></node>\n", i,
                   escape_markup(visible_token(graph.nodes[i])));
  for (const GraphEdge& edge : graph.edges) {
    fmt::format_to(out, "    <edge source=\"n{}\" target=\"n{}\"><data key=\"weight\">{}</data>",
                   edge.from, edge.to, weight_text(edge.weight));
    if (graph.heads > 1) fmt::format_to(out, "<data key=\"head\">{}</data>", edge.head);
    text += "</edge>\n";
  }
  return text += "  </graph>\n</graphml>\n";
}

std::string graph_dot(const AttentionGraph& graph) {
  std::string text =
      fmt::format("{} attention {{\n  layout=circo;\n", graph.directed ? "digraph" : "graph");
  const auto out = std::back_inserter(text);
  if (!graph.title.empty()) fmt::format_to(out, "  label={};\n", dot_string(graph.title));
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    fmt::format_to(out, "  n{} [label={}];\n", i, dot_string(graph.nodes[i]));
  for (const GraphEdge& edge : graph.edges) {
    const std::string head = graph.heads > 1 ? fmt::format(", head={}", edge.head) : "";
    fmt::format_to(out, "  n{} {} n{} [weight={}, penwidth={:.2f}{}];\n", edge.from,
                   graph.directed ? "->" : "--", edge.to, weight_text(edge.weight),
                   0.1 + 4 * std::min(edge.weight, 1.0), head);
  }
  return text += "}\n";
}

}  // namespace attend
