#include "attend/pictures/layer_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/pictures/render.h"
#include "tests/pictures/support.h"

namespace attend {
namespace layer_graph_test {

using testing::HasSubstr;

LayerGraph two_levels() {
  return {{{"source", {"<s>", "b"}}, {"encoder 1", {"<s>", "b"}}},
          {{1, 0, 0, 0, 0.25}, {1, 0, 0, 1, 0.75}, {1, 0, 1, 0, 0.005}}};
}

TEST(LayerGraph, IsAPicture) {
  const std::string svg = layer_graph_svg(two_levels());
  EXPECT_THAT(svg, HasSubstr(">encoder 1</text>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;s&gt;</text>"));
  EXPECT_EQ(count(svg, "<path d=\"M"), 2) << "a weight below 0.01 has no line";
  EXPECT_GT(decode_png(render_png(svg)).width, 0);
}

// The first token attends to itself and b, then b to c. Edges of c do not count, because no layer
// is left.
TEST(LayerGraph, StandsAroundItsFirstToken) {
  const std::vector<std::string> tokens = {"a", "b", "c", "alone"};
  LayerGraph graph{{{"source", tokens}, {"encoder 1", tokens}, {"encoder 2", tokens}},
                   {{1, 0, 0, 0, 0.5},
                    {1, 0, 0, 1, 0.5},
                    {1, 0, 1, 1, 0.25},
                    {1, 0, 1, 2, 0.75},
                    {1, 0, 2, 2, 1},
                    {1, 0, 3, 3, 1},
                    {2, 1, 0, 0, 0.375},
                    {2, 1, 0, 1, 0.625},
                    {2, 1, 1, 1, 1},
                    {2, 1, 3, 3, 1}},
                   /*around_first=*/true};
  const std::string svg = layer_graph_svg(graph);
  for (const char* weight : {"<title>0.625</title>", "<title>0.750</title>", ">0.38</text>"})
    EXPECT_EQ(count(svg, weight), 1) << weight;
  EXPECT_EQ(count(svg, "<path d=\"M"), 2);
  EXPECT_EQ(count(svg, "<circle"), 3) << "nothing leads to the last";
  EXPECT_GT(decode_png(render_png(svg)).width, 0);
  // A single token without a line.
  graph.edges = {{2, 1, 0, 0, 1}};
  EXPECT_EQ(count(layer_graph_svg(graph), "<circle"), 1);
}

TEST(LayerGraph, TooManyTokensAreRefused) {
  LayerGraph graph;
  graph.levels.push_back({"source", std::vector<std::string>(201, "a")});
  try {
    layer_graph_svg(graph);
    FAIL() << "was drawn";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("source has 201 tokens; a graph shows at most 200"));
  }
}

}  // namespace layer_graph_test
}  // namespace attend
