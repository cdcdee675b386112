#include "attend/pictures/thumbnail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "attend/base/error.h"
#include "attend/pictures/render.h"
#include "attend/pictures/theme-inl.h"
#include "tests/pictures/support.h"

namespace attend {
namespace thumbnail_test {

using testing::HasSubstr;

// Number of cells of a level: each begins with "M".
int cells(const std::string& svg, int level) {
  const std::string start = "<path class=\"l" + std::to_string(level) + "\" d=\"";
  const size_t position = svg.find(start);
  if (position == std::string::npos) return 0;
  const size_t first = position + start.size();
  return count(std::string_view(svg).substr(first, svg.find('"', first) - first), "M");
}

TEST(Thumbnail, ColoursEachWeightByItsLevelOfTwenty) {
  const std::string svg = thumbnail_svg(small_alignment());
  // 19 w, rounded: .7 .2 .1 .05 .35 .6
  for (const int level : {13, 4, 2, 1, 7, 11}) EXPECT_EQ(cells(svg, level), 1) << level;
  EXPECT_THAT(svg, HasSubstr(".l13{fill:" + hex(scale_color(13 / 19.0, Scheme::light)) + "}"));
  EXPECT_THAT(svg, HasSubstr(".l13{fill:" + hex(scale_color(13 / 19.0, Scheme::dark)) + "}"));
}

TEST(Thumbnail, DrawsWhatIsBeyondTheScaleAsItsEnds) {
  Alignment alignment = small_alignment();
  alignment.weights = {2, 3, {-2, 0, std::numeric_limits<double>::quiet_NaN(), 1, 7, 0.5}};
  const std::string svg = thumbnail_svg(alignment);
  EXPECT_EQ(cells(svg, 0), 3);
  EXPECT_EQ(cells(svg, 19), 2);
}

TEST(Thumbnail, IsSmallAndRendersWithHostileLabels) {
  Alignment alignment = small_alignment();
  alignment.source = {"<b>&\"", "a very long word that needs to be cut", "\xff"};
  const std::string svg = thumbnail_svg(alignment);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&amp;"));
  EXPECT_LT(svg.size(), 4096u);
  const Pixels pixels = decode_png(render_png(svg, 1));
  EXPECT_GT(pixels.width, 3 * 17);
  EXPECT_LT(pixels.width, 260);
  EXPECT_THROW(
      {
        alignment.weights = zeros(3, 2);
        thumbnail_svg(alignment);
      },
      Error);
  EXPECT_EQ(decode_png(render_png(thumbnail_legend_svg(), 1)).width, 260);
}

}  // namespace thumbnail_test
}  // namespace attend
