#include "attend/pictures/source_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/pictures/render.h"
#include "tests/pictures/support.h"
#include "tests/support/files.h"

namespace attend {
namespace source_panels_test {

using testing::HasSubstr;
using testing::Not;

// Six patches of 2 x 3, attended to by two tokens. The PNG may come from any renderer.
struct Case {
  Alignment alignment;
  SourcePicture picture;
};

Case small_case() {
  const std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"12\" height=\"8\">"
      "<rect width=\"12\" height=\"8\" fill=\"#000\"/></svg>";
  return {{{"p1", "p2", "p3", "p4", "p5", "p6"},
           {"7", "3"},
           {2, 6, {0, 0.75, 0.25, 0, 0, 0, 1, 0, 0, 0, 0, 0}},
           ""},
          {render_png(svg, 1), 8, 12, 2, 3}};
}

TEST(SourcePanels, ShowTheSourceOnceMoreForEachToken) {
  const auto [alignment, picture] = small_case();
  const std::string svg = panels_svg(alignment, picture);
  EXPECT_EQ(count(svg, "<image "), 3);
  EXPECT_EQ(count(svg, ">source</text>"), 1);
  EXPECT_EQ(count(svg, ">7</text>"), 1);
  EXPECT_EQ(count(svg, ">3</text>"), 1);
  // 12 x 8 pixels of 25 each; opacities 0.8 w.
  EXPECT_THAT(svg, HasSubstr("width=\"300\" height=\"200\""));
  EXPECT_THAT(svg, HasSubstr("width=\"100.00\" height=\"100.00\" fill-opacity=\"0.600\""
                             "><title>p2: 0.7500</title>"));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.200\"><title>p3: 0.2500</title>"));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.800\"><title>p1: 1.0000</title>"));
  EXPECT_EQ(count(svg, "</title></rect>"), 3) << "weights of 0 cover nothing";
}

TEST(SourcePanels, PutAPatchWhereItIs) {
  auto [alignment, picture] = small_case();
  alignment.target = {"7"};
  alignment.weights = {1, 6, {0, 0, 0, 0, 1, 0}};
  // The second panel begins 300 + 20 after the first; patch 5 is the second one in the second row.
  EXPECT_THAT(panels_svg(alignment, picture),
              HasSubstr("<rect x=\"444.00\" y=\"146.00\" width=\"100.00\""));
}

TEST(SourcePanels, HoldThePicture) {
  auto [alignment, picture] = small_case();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "base64,\""},
      {"a", "base64,YQ==\""},
      {"ab", "base64,YWI=\""},
      {"abc", "base64,YWJj\""},
      {"\xff\xfe\xfd\xfc", "base64,//79/A==\""}};
  for (const auto& [bytes, text] : cases) {
    picture.png = bytes;
    EXPECT_THAT(panels_svg(alignment, picture), HasSubstr(text));
  }
}

TEST(SourcePanels, AreDrawn) {
  auto [alignment, picture] = small_case();
  alignment.target = {"<b>&", "\xff"};
  alignment.weights.values[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(panels_svg(alignment, picture), Not(HasSubstr("<b>")));
  const Pixels pixels = decode_png(panels_png(alignment, picture));
  EXPECT_EQ(pixels.width, 2 * (2 * 24 + 3 * 300 + 2 * 20));
  alignment.target.clear();
  alignment.weights = zeros(0, 6);
  EXPECT_GT(decode_png(panels_png(alignment, picture)).width, 300);
}

TEST(SourcePanels, FitWideAndLongSources) {
  Alignment alignment = small_case().alignment;
  SourcePicture picture = small_case().picture;
  picture.width = 3000;
  EXPECT_LT(decode_png(panels_png(alignment, picture)).width, 2 * (960 + 2 * 24 + 1));
  picture.width = 5000;
  EXPECT_THAT(test::error_of([&] { panels_svg(alignment, picture); }), HasSubstr("5000 x 8"));
  picture = small_case().picture;
  picture.rows = 1;
  EXPECT_THAT(test::error_of([&] { panels_svg(alignment, picture); }),
              HasSubstr("1 x 3 parts and the alignment 6"));
  picture.rows = 2;
  alignment.target.assign(101, "x");
  alignment.weights = zeros(101, 6);
  EXPECT_THAT(test::error_of([&] { panels_svg(alignment, picture); }), HasSubstr("101"));
}

}  // namespace source_panels_test
}  // namespace attend
