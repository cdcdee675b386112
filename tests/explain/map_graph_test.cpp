#include "attend/explain/map_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "attend/explain/trace.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace map_graph_test {

using test::small_model;
using testing::ElementsAre;

LayerGraph graph_of(const std::string& name) {
  const test::SmallModel small = small_model(name);
  const Subject subject = small.subject();
  return layer_graph(layer_maps(subject, trace_network(subject.network(), subject.batch)));
}

std::vector<std::string> level_names(const LayerGraph& graph) {
  std::vector<std::string> names;
  for (const LayerGraph::Level& level : graph.levels) names.push_back(level.name);
  return names;
}

// Distinct pairs of levels joined by edges, in order of the first edge.
std::vector<std::pair<std::string, std::string>> joined(const LayerGraph& graph) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const LayerGraph::Edge& edge : graph.edges) {
    std::pair pair(graph.levels[edge.upper].name, graph.levels[edge.lower].name);
    if (std::find(all.begin(), all.end(), pair) == all.end()) all.push_back(pair);
  }
  return all;
}

TEST(MapGraph, ADecoderStandsOnItsSource) {
  const LayerGraph graph = graph_of("transformer");
  EXPECT_THAT(level_names(graph),
              ElementsAre("source", "encoder 1", "encoder 2", "answer", "decoder 1", "decoder 2"));
  EXPECT_THAT(graph.levels[0].tokens, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(graph.levels[5].tokens, ElementsAre("<s>", "x", "y", "z"));
  using Pair = std::pair<std::string, std::string>;
  EXPECT_THAT(joined(graph),
              ElementsAre(Pair("encoder 1", "source"), Pair("encoder 2", "encoder 1"),
                          Pair("decoder 1", "answer"), Pair("decoder 1", "encoder 2"),
                          Pair("decoder 2", "decoder 1"), Pair("decoder 2", "encoder 2")));
}

TEST(MapGraph, OtherModelsHaveTheLevelsThatTheyCompute) {
  EXPECT_THAT(level_names(graph_of("seq2seq")).size(), 2);
  EXPECT_THAT(level_names(graph_of("lm")), ElementsAre("source", "layer 1", "layer 2"));
  EXPECT_THAT(level_names(graph_of("classifier_recurrent")), ElementsAre("source", "pooling"));
}

TEST(MapGraph, WeightsOfATokenAddUpToOneInEachLevelBelow) {
  const LayerGraph graph = graph_of("transformer");
  std::map<std::tuple<size_t, size_t, int64_t>, double> sums;
  for (const LayerGraph::Edge& edge : graph.edges)
    sums[{edge.upper, edge.lower, edge.from}] += edge.weight;
  EXPECT_EQ(sums.size(), 2 * 5 + 2 * 2 * 4);
  for (const auto& [place, sum] : sums) EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(MapGraph, OtherProgramsGetNamedNodes) {
  const LayerGraph graph = graph_of("transformer");
  const AttentionGraph named = with_named_nodes(graph);
  EXPECT_EQ(named.nodes.size(), 3 * 5 + 3 * 4);
  EXPECT_EQ(named.nodes[5], "encoder 1: a");
  EXPECT_EQ(named.edges.size(), graph.edges.size());
  EXPECT_EQ(named.nodes[named.edges[0].from].substr(0, 9), "encoder 1");
  EXPECT_EQ(named.nodes[named.edges[0].to], "source: a");
}

}  // namespace map_graph_test
}  // namespace attend
