#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/vector_groups-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Flows are whole numbers: rounding could keep the search from ending.
constexpr double flow_unit = 1 << 30;

// With more groups, flows through all layers take minutes.
constexpr int64_t max_groups = 128;

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, int64_t,
        boost::property<boost::edge_residual_capacity_t, int64_t,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

void add_edge(FlowGraph& graph, size_t from, size_t to, double weight) {
  const auto capacity = std::llround(weight * flow_unit);
  if (capacity == 0) return;
  const auto there = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, there, capacity);
  boost::put(boost::edge_capacity, graph, back, 0);
  boost::put(boost::edge_reverse, graph, there, back);
  boost::put(boost::edge_reverse, graph, back, there);
}

// The nodes are the vectors of all layers, the source's first. An edge leads from a vector to each
// vector that it reads.
FlowGraph graph_of_layers(const std::vector<Tensor>& layers) {
  const int64_t vectors = layers[0].size(0);
  FlowGraph graph((layers.size() + 1) * static_cast<size_t>(vectors));
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const auto weights = layers[layer].accessor<double, 2>();
    const size_t below = layer * static_cast<size_t>(vectors);
    const size_t above = below + static_cast<size_t>(vectors);
    for (int64_t row = 0; row < vectors; ++row)
      for (int64_t column = 0; column < vectors; ++column)
        add_edge(graph, above + static_cast<size_t>(row), below + static_cast<size_t>(column),
                 weights[row][column]);
  }
  return graph;
}

}  // namespace

// Abnar & Zuidema 2020: the largest flow from a vector of the last layer down to each token. The
// capacity of an edge between groups is the sum over their vectors.
Tensor attention_flow(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  std::vector<Tensor> layers;
  const TracedAttention* pooling = nullptr;
  for (const TracedAttention& one : trace.attentions) {
    if (one.site.layer > 0) layers.push_back(layer_map(subject, one));
    if (one.site.layer == 0) pooling = &one;
  }
  const int64_t source = subject.source_length();
  const TopVectors top = subject.network().top_vectors_of(subject.batch);
  const Tensor read =
      pooling == nullptr ? top.shares : float64_on_cpu(traced_weights(*pooling)).mean(0);
  const VectorGroups groups = layer_groups(subject, layers[0].size(0), max_groups);
  for (Tensor& layer : layers) layer = groups.together(groups.together(layer, 0), 1).contiguous();
  const Tensor shares = groups.together(float64_on_cpu(read), 1);
  Tensor result = at::zeros(shares.sizes(), at::kDouble);
  auto flows = result.accessor<double, 2>();
  const auto vectors = static_cast<size_t>(groups.count());
  for (int64_t t = 0; t < shares.size(0); ++t) {
    FlowGraph graph = graph_of_layers(layers);
    const size_t answer = boost::add_vertex(graph);
    for (size_t group = 0; group < vectors; ++group)
      add_edge(graph, answer, layers.size() * vectors + group,
               shares.accessor<double, 2>()[t][static_cast<int64_t>(group)]);
    for (size_t group = 0; group < vectors; ++group)
      flows[t][static_cast<int64_t>(group)] =
          static_cast<double>(boost::push_relabel_max_flow(graph, answer, group)) / flow_unit;
  }
  return groups.shared_out(result).narrow(1, top.before_source, source);
}

}  // namespace attend
