#include <gtest/gtest.h>

#include "attend/pictures/markup-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace visible_token_test {

TEST(Tokens, EscapesMarkup) {
  EXPECT_EQ(escape_markup("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&apos;&amp;&apos;&lt;/a&gt;");
}

TEST(Tokens, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(visible_token(" "), "␣");
  EXPECT_EQ(visible_token(" a b "), "␣a b␣");
  EXPECT_EQ(visible_token("\xC2\xA0"), "␣");
  EXPECT_EQ(visible_token("\t\n"), "⇥↵");
  EXPECT_EQ(visible_token(std::string_view("\0", 1)), "␀");
  EXPECT_EQ(visible_token("\x1b[31m"), "␛[31m");
  EXPECT_EQ(visible_token("\x7f"), "␡");
  EXPECT_EQ(visible_token("\u200b"), "U+200B");
  EXPECT_EQ(visible_token("\u0301"), "\u25CC\u0301");
  EXPECT_EQ(visible_token(""), "");
}

TEST(Tokens, ReplacesWhatXmlForbids) {
  EXPECT_EQ(visible_token("a\xFF"
                          "b"),
            "a\uFFFDb");
  EXPECT_EQ(visible_token("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
  EXPECT_EQ(visible_token("\xEF\xBF\xBE"), "\uFFFD") << "U+FFFE";
  EXPECT_EQ(visible_token("\xC2\x85"), "\uFFFD") << "U+0085";
  EXPECT_EQ(visible_token("\u202Eabc"), "\uFFFDabc") << "right-to-left override";
}

TEST(Tokens, CountsTerminalColumns) {
  EXPECT_EQ(columns("abc"), 3);
  EXPECT_EQ(columns("天気"), 4);
  EXPECT_EQ(columns("e\u0301"), 1);
  EXPECT_EQ(columns("👩\u200d👩\u200d👧"), 2);
  EXPECT_EQ(columns("🇩🇪"), 2);
}

TEST(Tokens, ShortensBetweenClusters) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6), "abcde…");
  EXPECT_EQ(shorten("天気予報", 6), "天気…") << "half a wide character is not shown";
  EXPECT_EQ(shorten("e\u0301e\u0301e\u0301", 2), "e\u0301…");
  EXPECT_EQ(shorten("abc", 1), "…");
}

TEST(Tokens, EstimatesWidths) {
  EXPECT_LT(estimated_width("iii", 10), estimated_width("mmm", 10));
  EXPECT_DOUBLE_EQ(estimated_width("天", 10), 10);
  EXPECT_DOUBLE_EQ(estimated_width("a\u0301", 10), estimated_width("a", 10));
}

}  // namespace visible_token_test
}  // namespace attend
