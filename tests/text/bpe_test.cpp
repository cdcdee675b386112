#include "attend/text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "attend/text/units.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace bpe_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using Pieces = std::vector<std::string>;
using Merge = BytePairEncoding::Merge;

Pieces characters(const std::string& word) {
  Pieces pieces = split_characters(word);
  pieces.back() += "</w>";
  return pieces;
}

Pieces joined(const Pieces& pieces, const Merge& merge) {
  Pieces result;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool here =
        i + 1 < pieces.size() && pieces[i] == merge.first && pieces[i + 1] == merge.second;
    result.push_back(here ? pieces[i] + pieces[i + 1] : pieces[i]);
    if (here) ++i;
  }
  return result;
}

// Sennrich et al. 2016, algorithm 1: recounts all pairs for each merge.
std::vector<Merge> learned_plainly(const WordCounts& counts, int64_t merges, int64_t minimum) {
  std::vector<std::pair<Pieces, int64_t>> words;
  for (const auto& [word, count] : counts) words.emplace_back(characters(word), count);
  std::vector<Merge> result;
  while (static_cast<int64_t>(result.size()) < merges) {
    std::map<Merge, int64_t> pairs;
    for (const auto& [pieces, count] : words)
      for (size_t i = 0; i + 1 < pieces.size(); ++i) pairs[{pieces[i], pieces[i + 1]}] += count;
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second, a.first) < std::pair(b.second, b.first);
        });
    if (best == pairs.end() || best->second < minimum) break;
    result.push_back(best->first);
    for (auto& [pieces, count] : words) pieces = joined(pieces, best->first);
  }
  return result;
}

// Applies the earliest fitting merge everywhere until no merge fits.
Pieces split_plainly(const std::string& word, const std::vector<Merge>& merges) {
  Pieces pieces = characters(word);
  for (size_t rank = 0; rank < merges.size();) {
    const Pieces next = joined(pieces, merges[rank]);
    rank = next == pieces ? rank + 1 : 0;
    pieces = next;
  }
  pieces.back().resize(pieces.back().size() - 4);
  for (size_t i = 0; i + 1 < pieces.size(); ++i) pieces[i] += "@@";
  return pieces;
}

std::string code_file(const std::vector<Merge>& merges) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : merges) text += left + " " + right + "\n";
  return text;
}

auto any_word() {
  return rc::gen::map(
      rc::gen::nonEmpty(rc::gen::container<Pieces>(rc::gen::element<std::string>("a", "b", "ü"))),
      [](const Pieces& letters) {
        std::string word;
        for (const std::string& letter : letters) word += letter;
        return word;
      });
}

TEST(BytePairs, LearnTheExampleOfThePaper) {
  const WordCounts counts = {{"low", 5}, {"lowest", 2}, {"newer", 6}, {"wider", 3}};
  const auto codes = BytePairEncoding::learn(counts, 10);
  // er</w> 9 times, then lo 7 times; ne, ew and wer</w> tie with 6, and the greatest is taken.
  EXPECT_THAT(codes.merges()[0], Pair("e", "r</w>"));
  EXPECT_THAT(codes.merges()[1], Pair("l", "o"));
  EXPECT_THAT(codes.merges()[2], Pair("w", "er</w>"));
  EXPECT_THAT(codes.split("lower"), ElementsAre("lo@@", "wer"));
  EXPECT_EQ(codes.apply("  newer\tlow  x "), "  newer low x ");
}

TEST(BytePairs, LearnAsCountingAnewDoes) {
  EXPECT_TRUE(rc::check("the same merges", [] {
    WordCounts counts;
    for (const std::string& word : *rc::gen::nonEmpty(rc::gen::container<Pieces>(any_word())))
      ++counts[word];
    const int64_t minimum = *rc::gen::inRange(1, 4);
    const auto expected = learned_plainly(counts, 50, minimum);
    if (expected.empty()) return;
    RC_ASSERT(BytePairEncoding::learn(counts, 50, minimum).merges() == expected);
  }));
}

TEST(BytePairs, SplitAsTheEarliestMergeFirstDoes) {
  EXPECT_TRUE(rc::check("the same pieces, for codes that were never learned too", [] {
    const auto piece = rc::gen::element<std::string>("a", "b", "aa", "ab", "ba", "aba", "a</w>",
                                                     "b</w>", "ab</w>", "ü", "ü</w>");
    const auto merges =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<Merge>>(rc::gen::pair(piece, piece)));
    const auto codes = BytePairEncoding::parse(code_file(merges), "codes");
    const std::string word = *any_word();
    const Pieces pieces = codes.split(word);
    RC_ASSERT(pieces == split_plainly(word, merges));
    RC_ASSERT(codes.split(word) == pieces);  // from the cache
    RC_ASSERT(BytePairEncoding::undo(codes.apply(word)) == word);
  }));
}

TEST(BytePairs, SplitLongWordsInReasonableTime) {
  const auto codes = BytePairEncoding::parse("#version: 0.2\na a\naa aa\n", "codes");
  // All but the last a, which ends the word: 262,143 pieces aaaa, then aa and a.
  EXPECT_EQ(codes.split(std::string(1 << 20, 'a')).size(), 262143u + 3);
}

TEST(BytePairs, ReadCodesOfVersion01) {
  const auto codes = BytePairEncoding::parse("l o\nlo w\nlow </w>\ne r\n", "codes");
  EXPECT_THAT(codes.split("low"), ElementsAre("low"));
  EXPECT_THAT(codes.split("lower"), ElementsAre("low@@", "er"));
  EXPECT_THAT(codes.split("x"), ElementsAre("x"));
  EXPECT_THAT(codes.split(""), IsEmpty());
  EXPECT_EQ(codes.format(), "#version: 0.1\nl o\nlo w\nlow </w>\ne r\n");
}

TEST(BytePairs, AreUndone) {
  EXPECT_EQ(BytePairEncoding::undo("pul@@ ley sys@@ tem"), "pulley system");
  EXPECT_EQ(BytePairEncoding::undo("cut of@@"), "cut of");
  EXPECT_EQ(BytePairEncoding::undo("a@@b @@c"), "a@@b @@c");
  EXPECT_EQ(BytePairEncoding::undo(""), "");
}

TEST(BytePairs, AreSavedAndLoaded) {
  const test::TemporaryFolder folder;
  const auto codes = BytePairEncoding::parse("#version: 0.2\na b</w> \nü a\n", "codes");
  codes.save(folder / "codes");
  EXPECT_EQ(test::contents(folder / "codes"), "#version: 0.2\na b</w>\nü a\n");
  EXPECT_EQ(BytePairEncoding::load(folder / "codes").merges(), codes.merges());
  const std::string packed = folder.write("codes.gz", test::gzip("#version: 0.2\na b\n"));
  EXPECT_EQ(BytePairEncoding::load(packed).split("abab").size(), 3u) << "ab a b: b ends the word";
}

TEST(BytePairs, RefuseOtherFiles) {
  const auto message = [](std::string_view text) {
    return error_of([&] { BytePairEncoding::parse(text, "codes"); });
  };
  EXPECT_THAT(message(""), HasSubstr("codes: is empty"));
  EXPECT_EQ(message("#version: 0.3\na b\n"),
            "codes:1: version '0.3' of byte-pair codes; 0.1 and 0.2 are read");
  EXPECT_EQ(message("#version: 0.2\na b\nab\n"),
            "codes:3: 'ab' is not a merge; write two pieces with a space between");
  for (const std::string line : {"", " b", "a ", "a b c", "a  b"})
    EXPECT_THAT(message("a b\n" + line + "\n"), HasSubstr("codes:2: ")) << line;
  EXPECT_THAT(message("a \xff\n"), HasSubstr("codes:1: invalid UTF-8 at byte 3"));
  EXPECT_THAT(error_of([] {
                BytePairEncoding::learn({{"a", 9}, {"b", 1}}, 10);
              }),
              HasSubstr("give more text"));
}

}  // namespace bpe_test
}  // namespace attend
