#include "attend/data/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace pairs_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::string pairs_error(std::string_view text) {
  return error_of([&] { parse_pairs(text, "p.tsv"); });
}

// A line is an example each time it occurs.
TEST(Pairs, EachLineIsAnExample) {
  const auto examples = parse_pairs("b\tone\na\ttwo\nb\tthree\nb\tone\n", "p.tsv");
  ASSERT_EQ(examples.size(), 4u);
  for (const Example& example : examples) EXPECT_EQ(example.targets.size(), 1u);
  EXPECT_EQ(examples[3].source, "b");
  EXPECT_THAT(examples[3].targets, ElementsAre("one"));
  const auto [count, sources, references] = count_examples(examples);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(sources, 2);
  EXPECT_EQ(references, 4);
}

TEST(Pairs, OfOneSourceAreMergedWhereAsked) {
  const auto examples =
      merge_references(parse_pairs("b\tone\na\ttwo\nb\tthree\nb\tone\n", "p.tsv"));
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].source, "b");
  EXPECT_THAT(examples[0].targets, ElementsAre("one", "three", "one"));
  EXPECT_EQ(examples[1].source, "a");
  EXPECT_THAT(examples[1].targets, ElementsAre("two"));
  const auto [count, sources, references] = count_examples(examples);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(sources, 2);
  EXPECT_EQ(references, 4);
}

TEST(Pairs, ReadsEveryUsualWayToEndALine) {
  for (const std::string text : {"a\tx\nb\ty\n", "a\tx\nb\ty", "a\tx\r\nb\ty\r\n", "a\tx\r\nb\ty\r",
                                 "\xEF\xBB\xBF"
                                 "a\tx\nb\ty\n"}) {
    const auto examples = parse_pairs(text, "p.tsv");
    ASSERT_EQ(examples.size(), 2u);
    EXPECT_EQ(examples[0].source, "a");
    EXPECT_THAT(examples[1].targets, ElementsAre("y"));
  }
}

TEST(Pairs, KeepsSpacesWithinTheSides) {
  const auto examples = parse_pairs(" a b \t x\n", "p.tsv");
  EXPECT_EQ(examples[0].source, " a b ");
  EXPECT_EQ(examples[0].targets[0], " x");
}

TEST(Pairs, StayAsTheyStandAndAreMergedByTheirNormalForm) {
  const auto examples = parse_pairs("caf\u00e9\tx\ncafe\u0301\te\u0301\n", "p.tsv");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[1].source, "cafe\u0301");
  EXPECT_THAT(examples[1].targets, ElementsAre("e\u0301"));
  const auto merged = merge_references(examples);
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].source, "caf\u00e9");
  EXPECT_THAT(merged[0].targets, ElementsAre("x", "e\u0301"));
}

TEST(Pairs, MayEndWithBlankLines) {
  for (const char* const end : {"\n", "\n\n", "\r\n", " \n\t\n ", "\n\n\n"}) {
    const std::string text = std::string("a\tb\nc\td\n") + end;
    EXPECT_EQ(parse_pairs(text, "p.tsv").size(), 2U) << text;
    const test::TemporaryFolder folder;
    PairReader reader({folder.write("p.tsv", text)});
    std::string source, target;
    EXPECT_TRUE(reader.next(source, target) && reader.next(source, target)) << text;
    EXPECT_EQ(target, "d");
    EXPECT_FALSE(reader.next(source, target) || reader.next(source, target)) << text;
  }
}

TEST(Pairs, NameTheLine) {
  EXPECT_EQ(pairs_error(""), "p.tsv: is empty; each line is a source, a TAB and a target");
  EXPECT_EQ(pairs_error("\xEF\xBB\xBF"), pairs_error(""));
  EXPECT_EQ(pairs_error("a\tb\nab\n"),
            "p.tsv:2: no TAB; each line is a source, a TAB and a target");
  EXPECT_EQ(pairs_error("a\tb\n\nc\td\n"),
            "p.tsv:2: no TAB; each line is a source, a TAB and a target");
  EXPECT_EQ(
      pairs_error("a\tb\tc\n"),
      "p.tsv:1: more than one TAB; each line is a source, a TAB and a target; if sources are two "
      "texts, set data.pairs = always");
  EXPECT_EQ(pairs_error("\tb\n"), "p.tsv:1: the source, before the TAB, is empty");
  EXPECT_EQ(pairs_error(" \tb\n"), "p.tsv:1: the source, before the TAB, is empty");
  const std::string empty =
      "p.tsv:1: the target, after the TAB, is empty; if targets are any number of labels, set "
      "data.target = labels";
  EXPECT_EQ(pairs_error("a\t\n"), empty);
  EXPECT_EQ(pairs_error("a\t\r\n"), empty);
  EXPECT_EQ(pairs_error("a\tb\na\t\xe9\n"),
            "p.tsv:2: invalid UTF-8 at byte 3 (0xe9); save the text as UTF-8");
  EXPECT_THAT(pairs_error(std::string_view("a\0\tb\n", 5)), HasSubstr("p.tsv:1: holds a NUL byte"));
  EXPECT_THAT(pairs_error("a\tb\rc\td\r"), HasSubstr("p.tsv:1: a carriage return"));
}

TEST(Pairs, BoundTheLine) {
  std::string line(100, 'a');
  line += "\tb";
  EXPECT_EQ(parse_pairs(line, "p.tsv", 102).size(), 1u);
  EXPECT_THAT(error_of([&] { parse_pairs("a\tb\n" + line, "p.tsv", 101); }),
              HasSubstr("p.tsv:2: the line has over 101 bytes"));
  line.insert(0, 10 << 20, 'a');
  EXPECT_THAT(pairs_error(line), HasSubstr("p.tsv:1: the line has"));
}

TEST(Pairs, ReadAFileAndNameIt) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_pairs({folder.write("p.tsv", "a\tb\n")}).size(), 1u);
  const std::string empty = folder.write("empty.tsv", "");
  EXPECT_THAT(error_of([&] { read_pairs({empty}); }), HasSubstr(empty + ": is empty"));
  EXPECT_THAT(error_of([&] { read_pairs({folder / "none"}); }), HasSubstr("no such file"));
}

// For lines, rows and pairs of lines. Files of different lengths remain an Error.
TEST(Pairs, BadOnesAreLeftOutWhereAsked) {
  const test::TemporaryFolder folder;
  const std::string over(longest_line + 1, 'x');
  const PairFiles all[] = {{folder.write("p.tsv", "a\tb\nno tab\n\xff\tb\n" + over + "\nc\td\n")},
                           {folder.write("p.csv", "s,t\na,b\n\xff,b\n,b\nx,y,z\nc,d\n")},
                           {folder.write("s", "a\n\xff\n" + over + "\nb\nc\n"),
                            folder.write("t", "b\nb\nb\n\xfe\nd\n")}};
  for (const PairFiles& files : all) {
    std::vector<std::string> told;
    int64_t bad = 0;
    const auto examples = read_pairs(
        files, [&](const std::string& line) { told.push_back(line); }, &bad);
    ASSERT_EQ(examples.size(), 2u) << files.source;
    EXPECT_EQ(examples[1].source, "c");
    EXPECT_THAT(examples[1].targets, ElementsAre("d"));
    EXPECT_EQ(bad, 3);
    ASSERT_GE(told.size(), 3u);
    EXPECT_THAT(told[0], HasSubstr(files.source + ':'));
    EXPECT_NE(error_of([&] { read_pairs(files); }), "");
  }
  int64_t bad = 0;
  folder.write("t", "b\n");
  EXPECT_THAT(error_of([&] { read_pairs(all[2], {}, &bad); }), HasSubstr("has 1 lines"));
  EXPECT_EQ(bad, 0);
}

// Lines of lengths around the block size.
TEST(Pairs, AreReadPackedAndInPieces) {
  const test::TemporaryFolder folder;
  std::string text = "\xEF\xBB\xBF";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{}{}\t{}\r\n", i, std::string(static_cast<size_t>(i * 397 % 5000), 's'),
                        std::string(static_cast<size_t>(65500 + i), 't'));
  const auto expected = parse_pairs(text, "p.tsv");
  for (const std::string& bytes : {text, test::gzip(text), test::xz(text)}) {
    const auto examples = read_pairs({folder.write("p.tsv", bytes)});
    ASSERT_EQ(examples.size(), 40u);
    for (size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(examples[i].source, expected[i].source);
      EXPECT_EQ(examples[i].targets, expected[i].targets);
    }
  }
  const std::string path = folder.write("long.tsv", "a\tb\n" + std::string(1 << 21, 'a'));
  EXPECT_EQ(error_of([&] { read_pairs({path}); }),
            path + ":2: the line has over 1048576 bytes; split it");
}

class Parallel : public testing::Test {
 protected:
  std::string message(std::string_view source, std::string_view target) {
    return error_of([&] { read(source, target); });
  }
  std::vector<Example> read(std::string_view source, std::string_view target) {
    told.clear();
    return read_pairs({folder.write("s", source), folder.write("t", target)},
                      [&](const std::string& remark) { told.push_back(remark); });
  }
  const test::TemporaryFolder folder;
  std::vector<std::string> told;
};

TEST_F(Parallel, PairsTheLines) {
  const auto examples = read("a b\nc\na b\n", test::gzip("x\ty\r\nz\nx\ty"));
  ASSERT_EQ(examples.size(), 3u);
  EXPECT_EQ(examples[0].source, "a b");
  EXPECT_THAT(examples[0].targets, ElementsAre("x\ty"));
  EXPECT_THAT(examples[1].targets, ElementsAre("z"));
  EXPECT_THAT(examples[2].targets, ElementsAre("x\ty"));
  EXPECT_THAT(told, ElementsAre());
}

TEST_F(Parallel, LeaveOutEmptySidesAndSaySo) {
  const auto examples = read("a\n \nc\nd\n", "x\ny\n\nz\n");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_THAT(examples[1].targets, ElementsAre("z"));
  EXPECT_THAT(told, ElementsAre((folder / "s") + ": 2 pairs with an empty side are left out"));
}

TEST_F(Parallel, NeedEquallyManyLines) {
  EXPECT_EQ(message("a\nb\n", "x\n"),
            (folder / "s") + ":2: the other file has 1 lines; line i of both files must be a pair");
  EXPECT_THAT(message("a\n", "x\ny"), HasSubstr((folder / "t") + ":2: the other file has 1"));
  EXPECT_THAT(message("", ""), HasSubstr("is empty"));
  EXPECT_THAT(message("a\nb\n", "x\n\xff\n"), HasSubstr((folder / "t") + ":2: invalid UTF-8"));
}

TEST(Text, KeepsItsLines) {
  EXPECT_EQ(parse_text("\xEF\xBB\xBF"
                       "a\r\n\r\ncafe\u0301\n",
                       "t"),
            "a\n\ncafe\u0301\n");
  EXPECT_EQ(parse_text("no end", "t"), "no end\n");
  EXPECT_THAT(error_of([] { parse_text("", "t"); }), HasSubstr("t: is empty"));
  EXPECT_THAT(error_of([] { parse_text("a\nb\xff", "t"); }),
              HasSubstr("t:2: invalid UTF-8 at byte 2"));
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_text(folder.write("t", test::xz("a\n"))), "a\n");
  int64_t bad = 1;
  std::vector<std::string> told;
  const std::string path = folder.write("b", "a\nb\xff\n\nc\rd\ne\n");
  EXPECT_EQ(read_text(
                path, [&](const std::string& remark) { told.push_back(remark); }, &bad),
            "a\n\ne\n");
  EXPECT_EQ(bad, 3);
  EXPECT_THAT(told, testing::ElementsAre(HasSubstr(path + ":2: invalid UTF-8"),
                                         HasSubstr(path + ":4: a carriage return"),
                                         path + ": 2 lines cannot be read and are left out"));
}

}  // namespace pairs_test
}  // namespace attend
