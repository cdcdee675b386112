#include "attend/pictures/points_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "attend/pictures/render.h"
#include "tests/pictures/support.h"
#include "tests/support/files.h"

namespace attend {
namespace points_drawing_test {

using testing::HasSubstr;

TEST(PointsDrawing, HasAMarkForEachPoint) {
  const PointsDrawing drawing{{{0, 0, 0.25}, {2, 1, 0.5}, {1, 0.5, 0}}, "yes & no"};
  const std::string svg = points_svg(drawing);
  EXPECT_EQ(count(svg, "class=\"mark\""), 3);
  // 200 pixels per unit in both directions, with y upwards.
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.500\" cx=\"56.0\" cy=\"280.0\""));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"1.000\" cx=\"456.0\" cy=\"80.0\""));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.000\" cx=\"256.0\" cy=\"180.0\""));
  EXPECT_THAT(svg, HasSubstr("<title>2, 1: 0.5</title>"));
  EXPECT_THAT(svg, HasSubstr("yes &amp; no"));
  EXPECT_FALSE(render_png(svg).empty());
}

TEST(PointsDrawing, PointsAtOnePlaceAreDrawn) {
  const std::string svg = points_svg({{{3, -1e100, 0}, {3, -1e100, 0}}});
  EXPECT_EQ(count(svg, "fill-opacity=\"0.000\""), 2);
  EXPECT_EQ(count(svg, "nan"), 0);
  EXPECT_EQ(count(points_svg({{{-1e100, 0, 1}, {1e100, 0, 1}}}), "nan"), 0);
}

TEST(PointsDrawing, SaysWhatItCannotShow) {
  const auto refusal = [](const PointsDrawing& drawing) {
    return test::error_of([&] { points_svg(drawing); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("there are 0 points"));
  EXPECT_THAT(refusal({std::vector<PointsDrawing::Point>(2001)}), HasSubstr("2001 points"));
  EXPECT_THAT(refusal({{{std::numeric_limits<double>::quiet_NaN(), 0}}}), HasSubstr("nan"));
  EXPECT_THAT(refusal({{{0, 2e100}}}), HasSubstr("2e+100"));
}

}  // namespace points_drawing_test
}  // namespace attend
