#include "attend/data/node_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/data/tables.h"
#include "attend/files/safetensors.h"
#include "tests/support/files.h"

namespace attend {
namespace node_graph_test {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

SplitData parse(const std::string& nodes, const std::string& edges,
                const GraphConfig& config = {}) {
  return parse_graph(nodes, "nodes.tsv", edges, "edges.tsv", config, 1000);
}

std::string refusal(const std::string& nodes, const std::string& edges = "",
                    const GraphConfig& config = {}) {
  return test::error_of([&] { parse(nodes, edges, config); });
}

Tensor numbers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

const std::string four =
    "a\ttrain\tx\t3 0:-3\nb\tvalid\tthe second\t\r\nc\ttest\tx\nd\t-\t\t7:0.5\n";

TEST(NodeGraph, HasNodesInTheOrderOfTheirLines) {
  const SplitData read = parse(four, "a\tb\nd a\n  c   a\n");
  EXPECT_THAT(read.names, ElementsAre("a", "b", "c", "d"));
  ASSERT_EQ(read.train.size(), 1U);
  EXPECT_EQ(read.train[0].source, "a");
  EXPECT_THAT(read.valid[0].targets, ElementsAre("the second"));
  EXPECT_EQ(read.test[0].line, 3);
  const NodeGraph& graph = *read.graph;
  EXPECT_EQ(graph.node_count(), 4);
  EXPECT_TRUE(graph.offsets.equal(numbers({0, 3, 4, 5, 6})));
  EXPECT_TRUE(graph.neighbours.equal(numbers({1, 2, 3, 0, 0, 0})));
  EXPECT_TRUE(graph.feature_offsets.equal(numbers({0, 2, 2, 2, 3})));
  EXPECT_TRUE(graph.features.equal(numbers({0, 3, 7})));
  EXPECT_TRUE(graph.feature_values.equal(at::tensor({-0.75F, 0.25F, 1.0F})));
  EXPECT_EQ(graph.feature_count(), 8);
  EXPECT_TRUE(graph == *parse(four, "b a\na d\na c\n").graph);
}

TEST(NodeGraph, MayEndWithBlankLines) {
  EXPECT_TRUE(*parse(four + "\n\r\n", "a\tb\nd a\n \n\n").graph ==
              *parse(four, "a\tb\nd a\n").graph);
}

TEST(NodeGraph, HasDirectedEdgesAndFeaturesAsTheyAreWhereToldSo) {
  const NodeGraph graph =
      *parse(four, "a\tb\nd a\nb a\n", {.directed = true, .normalise_features = false}).graph;
  EXPECT_TRUE(graph.offsets.equal(numbers({0, 2, 3, 3, 3})));
  EXPECT_TRUE(graph.neighbours.equal(numbers({1, 3, 0})));
  EXPECT_TRUE(graph.feature_values.equal(at::tensor({-3.0F, 1.0F, 0.5F})));
}

TEST(NodeGraph, RefusesNodesByLine) {
  EXPECT_THAT(refusal(""), HasSubstr("nodes.tsv: holds no node"));
  EXPECT_THAT(refusal("a\ttrain\n"), HasSubstr("nodes.tsv:1: 2 fields; a line is node TAB"));
  EXPECT_THAT(refusal("a\ttrain\tx\t1\t2\n"), HasSubstr("nodes.tsv:1: 5 fields"));
  EXPECT_THAT(refusal("\ttrain\tx\n"), HasSubstr("the node's name is empty"));
  EXPECT_THAT(refusal("a b\ttrain\tx\n"), HasSubstr("node 'a b' has blanks"));
  EXPECT_THAT(refusal("<unk>\ttrain\tx\n"), HasSubstr("'<unk>' is spelled as a fixed token"));
  EXPECT_THAT(refusal("a\tdev\tx\n"), HasSubstr("split 'dev' is unknown; take train, valid"));
  EXPECT_THAT(refusal("b\t-\t\na\ttest\t-\n"),
              HasSubstr("nodes.tsv:2: node 'a' has no class, and split test needs one"));
  EXPECT_THAT(refusal("a\ttrain\t \t1\n"), HasSubstr("node 'a' has no class"));
  EXPECT_THAT(refusal("a\t-\t\nb\t-\t\na\t-\t\n"),
              HasSubstr("nodes.tsv:3: node 'a' is in line 1 too"));
  EXPECT_THAT(refusal("e\xcc\x81\t-\t\n\xc3\xa9\t-\t\n"), HasSubstr("in line 1 too"));
  for (const char* feature : {"-1", "x", "1.5", "16777216", ":2", "99999999999999999999"})
    EXPECT_THAT(refusal(fmt::format("a\t-\t\t{}\n", feature)),
                HasSubstr("is not a number from 0 to"))
        << feature;
  for (const char* feature : {"1:", "1:x", "1:inf", "1:nan", "1:1e39", "1:2:3"})
    EXPECT_THAT(refusal(fmt::format("a\t-\t\t{}\n", feature)), HasSubstr("is not a finite number"))
        << feature;
  EXPECT_THAT(refusal("a\t-\t\t4 1 4:2\n"), HasSubstr("feature 4 is given twice"));
  EXPECT_THAT(refusal("a\xff\t-\t\n"), HasSubstr("nodes.tsv:1: "));
}

// Also if further lines are read.
TEST(NodeGraph, NamesTheFirstLineIfNoneIsANode) {
  const test::TemporaryFolder folder;
  folder.write("nodes.tsv", "a,train,x,1\nb\ttrain\n");
  folder.write("edges.tsv", "");
  int64_t bad = 0;
  EXPECT_THAT(test::error_of([&] { read_graph(folder / "", {}, {}, {}, &bad); }),
              HasSubstr("nodes.tsv:1: 1 fields; a line is node TAB split"));
}

TEST(NodeGraph, RefusesEdgesByLine) {
  EXPECT_THAT(refusal(four, "a b\na\n"), HasSubstr("edges.tsv:2: 1 fields; a line is two nodes"));
  EXPECT_THAT(refusal(four, "a b c\n"), HasSubstr("edges.tsv:1: 3 fields"));
  EXPECT_THAT(refusal(four, "a b\na e\n"),
              HasSubstr("edges.tsv:2: node 'e' is not in nodes.tsv; add it there"));
  EXPECT_THAT(refusal(four, "b b\n"), HasSubstr("an edge of 'b' to itself; remove it"));
  EXPECT_THAT(refusal(four, "a b\nb c\nb a\n"),
              HasSubstr("edges.tsv:3: the edge of 'b' and 'a' is in line 1 too"));
  EXPECT_THAT(refusal(four, "a b\na b\n", {.directed = true}), HasSubstr("is in line 1 too"));
}

TEST(NodeGraph, ComesBackFromItsFile) {
  const test::TemporaryFolder folder;
  const NodeGraph graph = *parse(four, "a b\nc d\n").graph;
  save_graph(graph, folder / "graph.safetensors");
  EXPECT_TRUE(load_graph(folder / "graph.safetensors", 4) == graph);
}

TEST(NodeGraph, RefusesAFileThatBreaksItsRules) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "graph.safetensors";
  const NodeGraph good = *parse(four, "a b\na c\n").graph;
  const auto refused = [&](auto change, int64_t nodes = 4) {
    NodeGraph bad{good.offsets.clone(), good.neighbours.clone(), good.feature_offsets.clone(),
                  good.features.clone(), good.feature_values.clone()};
    change(bad);
    save_graph(bad, path);
    const std::string message = test::error_of([&] { load_graph(path, nodes); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message;
  };
  EXPECT_THAT(refused([](NodeGraph&) {}, 5), HasSubstr("has 4 nodes, and source.vocab has 5"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.offsets[1] = 9; }), HasSubstr("do not ascend"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.offsets[0] = -1; }), HasSubstr("do not ascend"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.feature_offsets[4] = 2; }), HasSubstr("do not ascend"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.neighbours[0] = 4; }),
              HasSubstr("a list of node 0 holds 4"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.neighbours[1] = 1; }),
              HasSubstr("a list of node 0 holds 1; its numbers ascend"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.neighbours[0] = 0; }),
              HasSubstr("holds the node itself"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.features[0] = max_features; }),
              HasSubstr("holds 16777216"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.feature_values[1] = HUGE_VAL; }),
              HasSubstr("a finite number"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.feature_values = g.feature_values.slice(0, 1); }),
              HasSubstr("need one value each"));
  EXPECT_THAT(refused([](NodeGraph& g) { g.features = g.features.to(at::kInt); }),
              HasSubstr("it must have one axis of Long"));
  write_safetensors(path, {.tensors = {{"offsets", good.offsets}}, .metadata = {}});
  EXPECT_THAT(test::error_of([&] { load_graph(path, 4); }), HasSubstr("neighbours is missing"));
}

TEST(NodeGraph, GivesItsTestNodesAsExamples) {
  const test::TemporaryFolder folder;
  folder.write("nodes.tsv", four);
  folder.write("edges.tsv", "a b\n");
  TextConfig text;
  text.format = DataFormat::graph;
  const std::vector<Example> examples = read_examples({folder.path()}, text);
  ASSERT_EQ(examples.size(), 1U);
  EXPECT_EQ(examples[0].source, "c");
  text.target = TargetKind::number;
  EXPECT_THAT(test::error_of([&] { read_examples({folder.path()}, text); }),
              HasSubstr("nodes.tsv:1: "));
}

}  // namespace node_graph_test
}  // namespace attend
