#include "attend/text/tokeniser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "attend/text/units.h"
#include "tests/support/files.h"

namespace attend {
namespace tokeniser_test {

using test::error_of;
using testing::HasSubstr;

TEST(Tokenise, SetsWordsAndPunctuationApart) {
  EXPECT_EQ(tokenise("Don't stop!"), "Don ￭'￭ t stop ￭!");
  EXPECT_EQ(tokenise("(a) b?!"), "(￭ a ￭) b ￭? ￭!");
  EXPECT_EQ(tokenise("3.5 km/h"), "3 ￭.￭ 5 km ￭/￭ h");
  EXPECT_EQ(tokenise("  naïve\tcafé \n"), "naïve café");
  EXPECT_EQ(tokenise("ne\u0301e x\u0301."), "ne\u0301e x\u0301 ￭.") << "marks stay";
  EXPECT_EQ(tokenise("#\u0301a"), "#\u0301￭ a");
  EXPECT_EQ(tokenise("\u0301"), "\u0301");
  EXPECT_EQ(tokenise("a\u00a0b"), "a ￭\u00a0￭ b") << "no white space of ASCII";
  EXPECT_EQ(tokenise(" "), "");
  EXPECT_EQ(tokenise("a ￭ ￬0"), "a ￬1 ￬0￭ 0");
  EXPECT_THAT(error_of([] { tokenise("a\xff"); }), HasSubstr("invalid UTF-8 at byte 2"));
}

TEST(Tokenise, IsUndoneWhereAModelBreaksTheRules) {
  EXPECT_EQ(undo_tokenise("a￭ ￭b"), "ab");
  EXPECT_EQ(undo_tokenise("￭ a ￭ b ￭"), "ab");
  EXPECT_EQ(undo_tokenise("a ￬ ￬7 ￬"), "a ￬ ￬7 ￬");
  EXPECT_EQ(undo_tokenise(""), "");
}

TEST(Tokenise, IsUndone) {
  EXPECT_TRUE(rc::check("the text comes back, but for its white space", [] {
    const auto part = rc::gen::element<std::string>("a", "Zz", "7", ".", "'", "-", " ", "\t", "\n",
                                                    "é", "\u0301", "\u0323", "한", "语", "😀", "￭",
                                                    "￬", "0", "1", "@@", "\u00a0");
    std::string text;
    for (const std::string& each : *rc::gen::container<std::vector<std::string>>(part))
      text += each;
    const auto words = split_words(text);
    RC_ASSERT(undo_tokenise(tokenise(text)) == fmt::format("{}", fmt::join(words, " ")));
    // Normalising tokenised text keeps its tokens.
    RC_ASSERT(to_nfc(tokenise(to_nfc(text))) == tokenise(to_nfc(text)));
  }));
}

}  // namespace tokeniser_test
}  // namespace attend
