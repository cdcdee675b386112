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
  EXPECT_EQ(count(svg, "<path d=\"M"), 2) << "a weight below 0.01 is no line";
  EXPECT_GT(decode_png(render_png(svg)).width, 0);
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
