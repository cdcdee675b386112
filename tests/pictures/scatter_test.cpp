#include "attend/pictures/scatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "attend/base/error.h"
#include "attend/pictures/render.h"
#include "tests/pictures/support.h"

namespace attend {
namespace scatter_test {

using testing::HasSubstr;
using testing::Not;

TEST(Scatter, PutsPointsWhereTheyAre) {
  const std::string svg = scatter_svg({{{-1, 10, "a < b", 0.25},
                                        {3, 10, "right", 0.5},
                                        {1, 30, "above", 0},
                                        {1, 20, "none", std::numeric_limits<double>::quiet_NaN()}},
                                       "0.5 & more"});
  EXPECT_THAT(svg, HasSubstr("0.5 &amp; more"));
  // The square is 400 pixels a side, from 48 on.
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.500\" cx=\"48.0\" cy=\"448.0\" r=\"7\">"
                             "<title>a &lt; b: 0.25</title>"));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"1.000\" cx=\"448.0\" cy=\"448.0\""));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.000\" cx=\"248.0\" cy=\"48.0\""));
  EXPECT_THAT(svg, HasSubstr("cx=\"248.0\" cy=\"248.0\""));
  for (const char* end : {">-1<", ">3<", ">10<", ">30<"}) EXPECT_THAT(svg, HasSubstr(end));
  EXPECT_THAT(svg, Not(HasSubstr("\"nan\"")));
  EXPECT_GT(decode_png(render_png(svg)).width, 0);
}

TEST(Scatter, SizesAtTheEdges) {
  EXPECT_GT(decode_png(render_png(scatter_svg({}))).width, 0);
  EXPECT_THAT(scatter_svg({{{5, 7, "one", 1}}}), HasSubstr("cx=\"248.0\" cy=\"248.0\""));
  const double largest = std::numeric_limits<double>::max();
  EXPECT_THAT(scatter_svg({{{-largest, 0, "a", 1}, {largest, 0, "b", 1}}}),
              HasSubstr("cx=\"448.0\""));
  Scatter many;
  many.points.resize(5001);
  try {
    scatter_svg(many);
    FAIL() << "was drawn";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("5001 points; a scatter shows at most 5000"));
  }
}

}  // namespace scatter_test
}  // namespace attend
