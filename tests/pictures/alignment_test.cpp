#include "attend/pictures/alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/pictures/grid-inl.h"
#include "attend/pictures/render.h"
#include "tests/pictures/support.h"

namespace attend {
namespace alignment_test {

using testing::HasSubstr;
using testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string message(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error";
}

// All writers of alignments, for common checks.
std::vector<std::string (*)(const Alignment&)> writers() {
  return {alignment_svg, alignment_png,
          [](const Alignment& alignment) { return alignment_text(alignment); }};
}

TEST(Alignment, RefusesWeightsThatDoNotBelong) {
  for (const auto write : writers()) {
    Alignment alignment = small_alignment();
    alignment.weights = zeros(3, 2);
    EXPECT_THAT(message([&] { write(alignment); }),
                HasSubstr("shape [3, 2]; 2 target and 3 source tokens need [2, 3]"));
    alignment.weights = {2, 3, {0.5}};
    EXPECT_THAT(message([&] { write(alignment); }), HasSubstr("1 weights have shape [2, 3]"));
    alignment.weights = {};
    EXPECT_THAT(message([&] { write(alignment); }), HasSubstr("shape [0, 0]"));
  }
}

TEST(Alignment, RefusesPicturesOfTooManyTokens) {
  Alignment alignment;
  alignment.source.assign(kMaximumPictureTokens + 1, "x");
  alignment.target = {"y"};
  alignment.weights = zeros(1, kMaximumPictureTokens + 1);
  for (const auto write : {alignment_svg, alignment_png}) {
    EXPECT_THAT(message([&] { write(alignment); }), HasSubstr("2001 source"));
    EXPECT_THAT(message([&] { write(alignment); }), HasSubstr(".json"));
  }
  EXPECT_THAT(alignment_text(alignment), HasSubstr("the first 200 of 2001 source"));
}

TEST(AlignmentSvg, NamesEveryTokenAndWeight) {
  const std::string svg = alignment_svg(small_alignment());
  for (const char* text : {">t<", ">i<", ">o<", ">SH<", ">AH0<", ">tion<", ">.70<", ">.05<"}) {
    EXPECT_EQ(count(svg, text), text == std::string(">tion<") ? 2 : 1) << text;
  }
  EXPECT_THAT(svg, Not(HasSubstr("not a number")));
}

TEST(AlignmentSvg, EscapesTokensAndTitle) {
  Alignment alignment = small_alignment();
  alignment.source = {"<script>", "&", "\"'"};
  alignment.target = {"\x1b\x08", "]]>"};
  alignment.title = "</title><script>alert(1)</script>\x01";
  const std::string svg = alignment_svg(alignment);
  EXPECT_EQ(count(svg, "<script"), 0);
  EXPECT_EQ(count(svg, "&lt;script&gt;"), 3);
  EXPECT_EQ(svg.find_first_of("\x01\x08\x1b"), std::string::npos);
  EXPECT_GT(decode_png(render_png(svg)).width, 0) << "well-formed";
}

TEST(AlignmentSvg, HatchesWhatIsNoNumber) {
  Alignment alignment = small_alignment();
  alignment.weights.values[0] = kNaN;
  alignment.weights.values[4] = std::numeric_limits<double>::infinity();
  alignment.weights.values[5] = -3.0;
  const std::string svg = alignment_svg(alignment);
  EXPECT_THAT(svg, HasSubstr("not a number"));
  EXPECT_THAT(svg, HasSubstr("class=\"l64\""));
  EXPECT_THAT(svg, HasSubstr(">-3.0<"));
}

TEST(AlignmentSvg, ScalesTheColoursToTheWeights) {
  WeightGrid grid{1, 2};
  const auto end = [&](double value) {
    grid.values = {value, kNaN};
    return scale_end(grid);
  };
  EXPECT_EQ(end(0.9), 1);
  EXPECT_EQ(end(1.0000001), 1);
  EXPECT_EQ(end(0.5), 0.5);
  EXPECT_EQ(end(0.3), 0.5);
  EXPECT_DOUBLE_EQ(end(0.0011), 0.002);
  EXPECT_EQ(end(7), 10);
  EXPECT_EQ(end(0), 1);
  EXPECT_EQ(end(-1), 1);
  EXPECT_EQ(end(kNaN), 1);
}

TEST(AlignmentSvg, WritesLargeMapsBriefly) {
  constexpr int64_t kSide = 1000;
  Alignment alignment;
  alignment.source.assign(kSide, "word");
  alignment.target = alignment.source;
  alignment.weights = identity(kSide);
  // At most three runs per row of up to 24 bytes, and a label every 11th row and column.
  EXPECT_LT(alignment_svg(alignment).size(), 3 * 24 * kSide + 2 * 100 * kSide / 11 + 20'000);
}

TEST(AlignmentPng, Decodes) {
  const std::string png = alignment_png(small_alignment());
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  const Pixels pixels = decode_png(png);
  EXPECT_GT(pixels.width, 2 * 3 * 40);
  EXPECT_GT(pixels.height, 2 * 2 * 40);
}

TEST(AlignmentPng, DrawsEmptyMapsAndEmptyTokens) {
  for (const auto& [rows, columns] : {std::pair{0, 0}, {0, 3}, {3, 0}, {1, 1}}) {
    Alignment alignment{std::vector<std::string>(columns), std::vector<std::string>(rows),
                        zeros(rows, columns), ""};
    EXPECT_GT(decode_png(alignment_png(alignment)).width, 0) << rows << " x " << columns;
    EXPECT_FALSE(alignment_text(alignment).empty());
  }
}

TEST(AlignmentPng, DrawsTheLargestMap) {
  Alignment alignment;
  alignment.source.assign(kMaximumPictureTokens, std::string(100, 'W'));
  alignment.target = alignment.source;
  alignment.title = std::string(10'000, 'T');
  alignment.weights = identity(kMaximumPictureTokens);
  EXPECT_GT(decode_png(alignment_png(alignment)).width, kMaximumPictureTokens);
}

TEST(AlignmentPng, DrawsDocumentsAboveTheParsersLimit) {
  constexpr int64_t kSide = 800;
  Alignment alignment;
  alignment.source.assign(kSide, "x");
  alignment.target = alignment.source;
  // Neighbours have different colours, so that no cells are merged.
  alignment.weights = zeros(kSide, kSide);
  for (size_t i = 0; i < alignment.weights.values.size(); ++i)
    alignment.weights.values[i] = static_cast<double>(i % 64) / 63;
  const std::string svg = alignment_svg(alignment);
  EXPECT_GT(svg.size(), 10'000'000u);
  EXPECT_GT(decode_png(render_png(svg, 1)).width, kSide);
}

}  // namespace alignment_test
}  // namespace attend
