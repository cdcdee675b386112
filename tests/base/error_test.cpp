#include "attend/base/error.h"

#include <gtest/gtest.h>

namespace attend {
namespace error_test {

TEST(Shown, QuotesPlainText) {
  EXPECT_EQ(in_quotes("a word"), "'a word'");
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("caf\u00e9"), "'caf\u00e9'");
}

TEST(Shown, KeepsAMessageOnOneLineAndATerminalSafe) {
  EXPECT_EQ(in_quotes("a\nb\x1b[2J"), "'a\\x0ab\\x1b[2J'");
  EXPECT_EQ(in_quotes(std::string_view("\0", 1)), "'\\x00'");
  EXPECT_EQ(in_quotes("\x7f\xc2\x9b"), "'\\x7f\\xc2\\x9b'");
}

TEST(Shown, EscapesBytesThatAreNoCharacter) {
  EXPECT_EQ(in_quotes("\xff"), "'\\xff'");
  EXPECT_EQ(in_quotes("\xc2"), "'\\xc2'");
  EXPECT_EQ(in_quotes("\xe2\x82"), "'\\xe2\\x82'");
  EXPECT_EQ(in_quotes("\xc0\x80"), "'\\xc0\\x80'") << "overlong";
  EXPECT_EQ(in_quotes("\xed\xa0\x80"), "'\\xed\\xa0\\x80'") << "surrogate";
  EXPECT_EQ(in_quotes("\xf4\x90\x80\x80"), "'\\xf4\\x90\\x80\\x80'") << "past U+10FFFF";
}

TEST(Shown, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(in_quotes(std::string(60, 'a')), "'" + std::string(60, 'a') + "'");
  EXPECT_EQ(in_quotes(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
  EXPECT_EQ(in_quotes(std::string(59, 'a') + "\u00e9b"), "'" + std::string(59, 'a') + "\u00e9...'");
}

TEST(Fail, ThrowsTheFormattedMessage) {
  try {
    fail("{} of {}", 1, "two");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "1 of two");
  }
}

}  // namespace error_test
}  // namespace attend
