#include "attend/pictures/interval_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/pictures/render.h"
#include "tests/pictures/support.h"

namespace attend {
namespace interval_panels_test {

using testing::HasSubstr;

TEST(IntervalPanels, DrawEachLineAndWhatItIsComparedWith) {
  const std::vector<IntervalPanel> panels = {
      {"figure <1>", "above 0.5", {{"one", 0.5, 0.25, 1, 0.75, true}, {"two", 0, 0, 0, {}, false}}},
      {"figure 2", "", {{"one", -1, -2, 0, {}, true}}}};
  const std::string svg = interval_panels_svg("a & b\xff", panels);
  EXPECT_EQ(count(svg, ">a &amp; b\uFFFD<"), 2) << "title and text";
  EXPECT_THAT(svg, HasSubstr(">figure &lt;1&gt;</text>"));
  EXPECT_THAT(svg, HasSubstr("0.00 to 1.00; wanted above 0.5"));
  EXPECT_THAT(svg, HasSubstr("-2.00 to 0.00</text>"));
  EXPECT_EQ(count(svg, "<circle"), 3);
  EXPECT_EQ(count(svg, "class=\"failed\""), 1);
  EXPECT_EQ(count(svg, "<path class=\"line\""), 1);
  // The first panel's axis begins at 186 with 218 pixels: mean, interval and tick of its first
  // line.
  EXPECT_THAT(svg, HasSubstr("cx=\"295.0\""));
  EXPECT_THAT(svg, HasSubstr("d=\"M240.5 96H404.0\""));
  EXPECT_THAT(svg, HasSubstr("d=\"M349.5 90v12\""));
  EXPECT_GT(decode_png(render_png(svg, 1)).width, 3 * 400);
}

}  // namespace interval_panels_test
}  // namespace attend
