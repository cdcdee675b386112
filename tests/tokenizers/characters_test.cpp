#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/decomposition-inl.h"
#include "attend/tokenizers/trie-inl.h"

namespace attend::internal {
namespace characters_test {

using testing::ElementsAre;
using testing::Pair;

std::string repaired(std::string_view text) {
  std::string changed;
  return std::string(well_formed(text, changed));
}

TEST(Characters, AreWrittenAndReadBack) {
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    std::string text;
    append_point(text, point);
    ASSERT_EQ(text.size(), character_size(text[0]));
    ASSERT_EQ(first_point(text), point);
    ASSERT_EQ(last_point("a" + text), point);
    ASSERT_TRUE(is_well_formed(text));
  }
}

// Runs from the Unicode Standard 15, section 3.9, table 3-8 and similar ones.
TEST(Characters, ThatAreMalformedBecomeOneForEachLongestRun) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(repaired("a\xC3\xA9"), "a\u00E9");
  EXPECT_EQ(repaired("\xC0\xAF"), bad + bad);
  EXPECT_EQ(repaired("\xED\xA0\x80z"), bad + bad + bad + "z");
  EXPECT_EQ(repaired("\xF4\x91\x92\x93\xFF"), bad + bad + bad + bad + bad);
  EXPECT_EQ(repaired("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), bad + bad + bad + bad + "A");
  EXPECT_EQ(repaired("a\xE2\x82"), "a" + bad);
  EXPECT_EQ(repaired("\x80"), bad);
}

TEST(Characters, AreOfTheClassesOfTheirUsers) {
  EXPECT_TRUE(is(U'\u00E9', letter));
  EXPECT_TRUE(is(U'\u00BD', number));
  EXPECT_TRUE(is(U'\u4E2D', bert_cjk));
  EXPECT_TRUE(is(U'\u200B', bert_removed));
  EXPECT_TRUE(is(U'$', bert_punctuation));
  EXPECT_FALSE(is(U'\u20AC', bert_punctuation));
  EXPECT_TRUE(is(U'\u0301', bert_mark | combining));
  EXPECT_TRUE(is(U'_', word_character));
  // A mark of Unicode 14, newer than the marks of BERT's normaliser.
  EXPECT_FALSE(is(U'\u1ACE', bert_mark));
}

TEST(Characters, HaveLowerCases) {
  const auto lower = [](char32_t point) {
    std::string text;
    append_lower(text, point);
    return text;
  };
  EXPECT_EQ(lower(U'A'), "a");
  EXPECT_EQ(lower(U'\u00C9'), "\u00E9");
  EXPECT_EQ(lower(U'\u0178'), "\u00FF");
  EXPECT_EQ(lower(U'\u0130'), "i\u0307");
  EXPECT_EQ(lower(U'\u03A3'), "\u03C3");
  EXPECT_EQ(lower(U'1'), "1");
}

TEST(Characters, AreTakenApartWithTheirMarksInOrder) {
  Decomposition apart;
  apart.add(U'\u1EAD');  // with a circumflex (class 230) and a dot below (220)
  apart.add(U'\u0315');  // class 232
  apart.add(U'\u0300');  // class 230
  EXPECT_THAT(apart.ordered(), ElementsAre('a', 0x323, 0x302, 0x300, 0x315));
}

TEST(Trie, FindsStringsAndTheirPrefixes) {
  const Trie trie({{"ab", 0}, {"abcd", 1}, {"b", 2}, {"", 3}, {"ab", 4}, {"\xFF", 5}});
  EXPECT_EQ(trie.find("ab"), 0);
  EXPECT_EQ(trie.find("abc"), Trie::none);
  EXPECT_EQ(trie.find("abcd"), 1);
  EXPECT_EQ(trie.find("abcde"), Trie::none);
  EXPECT_EQ(trie.find(""), Trie::none);
  EXPECT_EQ(trie.find("\xFF"), 5);
  EXPECT_EQ(trie.find("\x01"), Trie::none);
  std::vector<std::pair<size_t, int32_t>> prefixes;
  trie.for_each_prefix("abcde",
                       [&](size_t size, int32_t value) { prefixes.emplace_back(size, value); });
  EXPECT_THAT(prefixes, ElementsAre(Pair(2, 0), Pair(4, 1)));
  EXPECT_EQ(Trie().find("a"), Trie::none);
}

}  // namespace characters_test
}  // namespace attend::internal
