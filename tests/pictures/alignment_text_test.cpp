#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "attend/base/error.h"
#include "attend/pictures/visible_token-inl.h"
#include "tests/pictures/support.h"

namespace attend {
namespace alignment_text_test {

using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string without_colors(const std::string& text) {
  std::string result;
  bool inside = false;
  for (const char c : text) {
    if (c == '\x1b') inside = true;
    if (!inside) result += c;
    if (c == 'm') inside = false;
  }
  return result;
}

// Terminal column of the beginning of `part`.
int column_of(const std::string& line, const std::string& part) {
  const size_t position = line.find(part);
  return position == line.npos ? -1 : columns(line.substr(0, position));
}

Alignment sentence(int words) {
  Alignment alignment;
  for (int i = 0; i < words; ++i) {
    alignment.source.push_back("Wort" + std::to_string(i));
    alignment.target.push_back("word" + std::to_string(i));
  }
  alignment.weights = identity(words);
  return alignment;
}

TEST(AlignmentText, ShowsTokensAndHundredths) {
  const auto lines = lines_of(alignment_text(small_alignment()));
  EXPECT_EQ(lines.at(0), "tion");
  EXPECT_THAT(lines.at(2), HasSubstr("SH"));
  EXPECT_THAT(lines.at(2), HasSubstr(".70"));
  EXPECT_THAT(lines.at(3), HasSubstr(".35"));
}

TEST(AlignmentText, AlignsWideAndCombiningTokens) {
  const Alignment alignment{{"天気", "e\u0301", "x"},
                            {"日", "n\u0303", "👩\u200d👧"},
                            {3, 3, {0.11, 0.21, 0.31, 0.12, 0.22, 0.32, 0.13, 0.23, 0.33}},
                            ""};
  for (const bool color : {false, true}) {
    const auto lines = lines_of(without_colors(alignment_text(alignment, {.color = color})));
    for (int column = 0; column < 3; ++column) {
      const std::string start = "." + std::to_string(column + 1);
      const int place = column_of(lines.at(1), start);
      EXPECT_GT(place, 0);
      EXPECT_EQ(column_of(lines.at(2), start), place);
      EXPECT_EQ(column_of(lines.at(3), start), place);
    }
  }
}

TEST(AlignmentText, StaysInsideTheWidth) {
  for (const int words : {1, 5, 12, 40, 150}) {
    for (const int width : {20, 40, 80, 200}) {
      for (const bool color : {false, true}) {
        for (const bool unicode : {false, true}) {
          const auto lines = lines_of(without_colors(alignment_text(
              sentence(words), {.color = color, .unicode = unicode, .width = width})));
          int widest = 0;
          for (const std::string& line : lines) widest = std::max(widest, columns(line));
          EXPECT_LE(widest, width) << words << " words, colour " << color;
        }
      }
    }
  }
}

TEST(AlignmentText, NamesTheStrongestSourceOfWideMaps) {
  const std::string text = alignment_text(sentence(30));
  EXPECT_THAT(text, HasSubstr("  1.0 Wort17\n"));
  EXPECT_THAT(text, HasSubstr("word17 "));
}

TEST(AlignmentText, ContinuesInPanels) {
  const std::string text = alignment_text(sentence(60));
  EXPECT_THAT(text, HasSubstr("source 1 to "));
  EXPECT_THAT(text, HasSubstr(" to 60 of 60"));
}

TEST(AlignmentText, IsAsciiWhereAsked) {
  Alignment alignment = small_alignment();
  alignment.source = {"ə", " ", "天"};
  alignment.title = "ʃən";
  for (const bool color : {false, true}) {
    const std::string text = alignment_text(alignment, {.color = color, .unicode = false});
    for (const char c : text) EXPECT_GE(c, 0) << text;
    EXPECT_THAT(text, HasSubstr("_"));
  }
}

TEST(AlignmentText, LetsNoEscapeSequencePass) {
  Alignment alignment = small_alignment();
  alignment.source[0] = "\x1b]0;owned\x07";
  alignment.target[0] = "\r\n";
  alignment.title =
      "\x1b[2J\x9b"
      "2J";
  const std::string text = alignment_text(alignment);
  EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos);
  EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("␛"));
}

TEST(AlignmentText, BoundsWhatItPrints) {
  const std::string text = alignment_text(sentence(300), {.maximum_tokens = 20});
  EXPECT_THAT(text, HasSubstr("the first 20 of 300 source and 20 of 300 target tokens"));
  EXPECT_EQ(text.find("word20"), std::string::npos);
  Alignment alignment = small_alignment();
  alignment.source[0] = std::string(100'000, 'x');
  EXPECT_LT(alignment_text(alignment).size(), 4000u);
}

TEST(AlignmentText, SurvivesWhatIsNoNumber) {
  Alignment alignment = small_alignment();
  std::ranges::fill(alignment.weights.values, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(alignment_text(alignment), HasSubstr("nan"));
  alignment = sentence(40);
  std::ranges::fill(alignment.weights.values, -std::numeric_limits<double>::infinity());
  EXPECT_THAT(alignment_text(alignment), HasSubstr("????"));
}

TEST(AlignmentText, RefusesImpossibleOptions) {
  EXPECT_THROW(alignment_text(small_alignment(), {.width = 19}), Error);
  EXPECT_THROW(alignment_text(small_alignment(), {.maximum_tokens = 0}), Error);
}

}  // namespace alignment_text_test
}  // namespace attend
