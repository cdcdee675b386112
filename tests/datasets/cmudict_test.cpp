#include "attend/datasets/cmudict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/data/pairs.h"
#include "attend/data/split.h"
#include "tests/support/files.h"

namespace attend {
namespace cmudict_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::string dictionary_error(std::string_view text) {
  return error_of([&] { parse_cmudict(text, "d.dict"); });
}

// Enough words for every part.
std::string dictionary(int words) {
  std::string text;
  for (int i = 0; i < words; ++i) text += fmt::format("word{0} W ER{0} D\nword{0}(2) W AO D\n", i);
  return text;
}

TEST(Cmudict, ReadsBothLayouts) {
  const auto entries = parse_cmudict(
      ";;; a comment\n"
      "# another\n"
      "\n"
      "cat K AE1 T\n"
      "cat(2) K AA0 T # rare\n"
      "CAT(3)  K AH1 T\r\n"
      "'em AH M\n",
      "d.dict");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].word, "cat");
  EXPECT_THAT(entries[0].pronunciations, ElementsAre("K AE T", "K AA T"));
  EXPECT_EQ(entries[1].word, "CAT");
  EXPECT_EQ(entries[2].word, "'em");
}

TEST(Cmudict, WritesAPronunciationOnceWithoutStress) {
  const auto entries = parse_cmudict("a AH0\na(2) EY1\na(3) AH1\n", "d.dict");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_THAT(entries[0].pronunciations, ElementsAre("AH", "EY"));
}

TEST(Cmudict, KeepsWordsWithALetter) {
  const auto entries = parse_cmudict("3d TH R IY D\n42 F AO R\n. D AA T\né EY\n", "d.dict");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].word, "3d");
  EXPECT_EQ(entries[1].word, "é");
}

TEST(Cmudict, SkipsByteOrderMarks) {
  const auto entries = parse_cmudict("\uFEFF;;; one\n\uFEFF\uFEFFcat K AE T\n", "d.dict");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].word, "cat");
}

TEST(Cmudict, TakesOnlyANumberInBracketsOffAWord) {
  const auto entries = parse_cmudict("a(2) AH\nb() B\nc(x) S\n(2)d D\ne(12) IY\n)f( F\n", "d.dict");
  std::vector<std::string> words;
  for (const auto& entry : entries) words.push_back(entry.word);
  EXPECT_THAT(words, ElementsAre("a", "b()", "c(x)", "(2)d", "e", ")f("));
}

TEST(Cmudict, NamesTheLine) {
  EXPECT_EQ(dictionary_error(""), "d.dict: holds no words; a line is a word and its phonemes");
  EXPECT_THAT(dictionary_error("42 F AO R\n"), HasSubstr("holds no words"));
  EXPECT_EQ(dictionary_error("cat K\ndog\n"), "d.dict:2: the word 'dog' has no phonemes");
  EXPECT_EQ(dictionary_error("cat # K\n"), "d.dict:1: the word 'cat' has no phonemes");
  EXPECT_THAT(dictionary_error("cat K 12 T\n"), HasSubstr("d.dict:1: '12' is not a phoneme"));
  EXPECT_THAT(dictionary_error("a AH\ncaf\xe9 K\n"),
              HasSubstr("d.dict:2: invalid UTF-8 at byte 4"));
  EXPECT_THAT(dictionary_error(std::string_view("a\0 AH\n", 6)),
              HasSubstr("d.dict:1: holds a NUL"));
  std::string line(2 << 20, 'a');
  line += " B";
  EXPECT_THAT(dictionary_error(line), HasSubstr("d.dict:1: the line"));
}

// The published values of 64-bit FNV-1a for "", "a" and "foobar" are cbf29ce484222325,
// af63dc4c8601ec8c and 85944171f73967e8: 37, 96 and 68 modulo 100. "dog" gives 93.
TEST(PartOf, IsTheSameOnEveryMachine) {
  EXPECT_EQ(part_of(""), Part::train);
  EXPECT_EQ(part_of("a"), Part::test);
  EXPECT_EQ(part_of("foobar"), Part::train);
  EXPECT_EQ(part_of("dog"), Part::valid);
  EXPECT_EQ(part_of("caf\u00e9"), part_of("cafe\u0301"));
}

TEST(PartOf, GivesTheSharesItPromises) {
  int counts[3] = {};
  const int words = 100'000;
  for (int i = 0; i < words; ++i) ++counts[static_cast<int>(part_of(fmt::format("w{}", i)))];
  // Five standard deviations of a binomial: sqrt(n p (1 - p)) is 95 and 69.
  EXPECT_NEAR(counts[0], 0.90 * words, 5 * 95);
  EXPECT_NEAR(counts[1], 0.05 * words, 5 * 69);
  EXPECT_NEAR(counts[2], 0.05 * words, 5 * 69);
}

TEST(SplitCmudict, WritesEveryWordOnOneSide) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("d.dict", dictionary(500));
  const std::string out = folder / "new/data";
  const SplitCounts counts = split_cmudict(path, out);
  EXPECT_EQ(counts.train_words + counts.valid_words + counts.test_words, 500);
  EXPECT_EQ(counts.train_pairs + counts.valid_pairs + counts.test_pairs, 1000);
  std::vector<std::string> all;
  const auto read = [&](const char* name, int64_t words, int64_t pairs, Part part) {
    const auto examples = merge_references(read_pairs({out + "/" + name}));
    EXPECT_EQ(static_cast<int64_t>(examples.size()), words);
    int64_t targets = 0;
    for (const Example& example : examples) {
      EXPECT_EQ(part_of(example.source), part) << example.source;
      EXPECT_THAT(example.targets, ElementsAre("W ER D", "W AO D"));
      targets += static_cast<int64_t>(example.targets.size());
      all.push_back(example.source);
    }
    EXPECT_EQ(targets, pairs);
  };
  read("train.tsv", counts.train_words, counts.train_pairs, Part::train);
  read("valid.tsv", counts.valid_words, counts.valid_pairs, Part::valid);
  read("test.tsv", counts.test_words, counts.test_pairs, Part::test);
  EXPECT_EQ(all.size(), 500u);
}

TEST(SplitCmudict, RefusesBeforeItWrites) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "out";
  const std::string few = folder.write("few.dict", "cat K AE T\n");
  EXPECT_EQ(error_of([&] { split_cmudict(few, out); }),
            few + ": 1 words are too few: they leave train, valid or test empty");
  const std::string bad = folder.write("bad.dict", dictionary(500) + "word\n");
  EXPECT_THAT(error_of([&] { split_cmudict(bad, out); }), HasSubstr(bad + ":1001: "));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(SplitCmudict, RefusesAFileInPlaceOfTheFolder) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("d.dict", dictionary(500));
  EXPECT_EQ(error_of([&] { split_cmudict(path, path); }),
            path + ": is a file; name a folder to write into");
  EXPECT_THAT(error_of([&] { split_cmudict(path, path + "/sub"); }),
              HasSubstr("cannot be created"));
  EXPECT_EQ(test::contents(path), dictionary(500));
}

// The dictionary that `attend data cmudict` reads by default.
TEST(SplitCmudict, ReadsDebiansDictionary) {
  if (!std::filesystem::exists(debian_cmudict)) GTEST_SKIP() << "pocketsphinx-en-us not installed";
  const test::TemporaryFolder folder;
  const SplitCounts counts = split_cmudict(debian_cmudict, folder.path());
  EXPECT_NEAR(static_cast<double>(counts.train_words), 0.90 * 126'000, 1000);
  EXPECT_NEAR(static_cast<double>(counts.valid_words), 0.05 * 126'000, 500);
  EXPECT_NEAR(static_cast<double>(counts.test_words), 0.05 * 126'000, 500);
}

}  // namespace cmudict_test
}  // namespace attend
