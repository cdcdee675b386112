#include "attend/data/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace attend {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::string pairs_error(std::string_view text) {
  return error_of([&] { parse_pairs(text, "p.tsv"); });
}

TEST(Pairs, GroupsTheTargetsOfASource) {
  const auto examples = parse_pairs("b\tone\na\ttwo\nb\tthree\nb\tone\n", "p.tsv");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].source, "b");
  EXPECT_THAT(examples[0].targets, ElementsAre("one", "three"));
  EXPECT_EQ(examples[1].source, "a");
  EXPECT_THAT(examples[1].targets, ElementsAre("two"));
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

TEST(Pairs, ComparesSourcesInNfc) {
  const auto examples = parse_pairs("caf\u00e9\tx\ncafe\u0301\ty\n", "p.tsv");
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_EQ(examples[0].source, "caf\u00e9");
  EXPECT_THAT(examples[0].targets, ElementsAre("x", "y"));
}

TEST(Pairs, NameTheLine) {
  EXPECT_EQ(pairs_error(""), "p.tsv: is empty; each line is a source, a TAB and a target");
  EXPECT_EQ(pairs_error("\xEF\xBB\xBF"), pairs_error(""));
  EXPECT_EQ(pairs_error("a\tb\nab\n"),
            "p.tsv:2: no TAB; each line is a source, a TAB and a target");
  EXPECT_EQ(pairs_error("a\tb\n\n"), "p.tsv:2: no TAB; each line is a source, a TAB and a target");
  EXPECT_EQ(pairs_error("a\tb\tc\n"),
            "p.tsv:1: more than one TAB; each line is a source, a TAB and a target");
  EXPECT_EQ(pairs_error("\tb\n"), "p.tsv:1: the source, before the TAB, is empty");
  EXPECT_EQ(pairs_error(" \tb\n"), "p.tsv:1: the source, before the TAB, is empty");
  EXPECT_EQ(pairs_error("a\t\n"), "p.tsv:1: the target, after the TAB, is empty");
  EXPECT_EQ(pairs_error("a\t\r\n"), "p.tsv:1: the target, after the TAB, is empty");
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
              HasSubstr("p.tsv:2: the line has 102 bytes; at most 101 are allowed"));
  line.insert(0, 10 << 20, 'a');
  EXPECT_THAT(pairs_error(line), HasSubstr("p.tsv:1: the line has"));
}

TEST(Pairs, ReadAFileAndNameIt) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_pairs(folder.write("p.tsv", "a\tb\n")).size(), 1u);
  const std::string empty = folder.write("empty.tsv", "");
  EXPECT_THAT(error_of([&] { read_pairs(empty); }), HasSubstr(empty + ": is empty"));
  EXPECT_THAT(error_of([&] { read_pairs(folder / "none"); }), HasSubstr("no such file"));
}

TEST(CheckPairs, WantsTwoTargetSymbols) {
  const auto check = [](const std::vector<Example>& examples, Units units) {
    return error_of([&] { check_pairs(examples, units, "p.tsv"); });
  };
  EXPECT_EQ(check({{"a", {"x y"}}}, Units::space), "");
  EXPECT_EQ(check({{"a", {"x"}}, {"b", {"x", "y"}}}, Units::space), "");
  EXPECT_EQ(check({{"a", {"xy"}}}, Units::character), "");
  EXPECT_EQ(check({{"a", {"xy"}}, {"b", {"xy xy"}}}, Units::space),
            "p.tsv: every target is made of the one symbol 'xy'; at least two are needed to learn "
            "from (are --target-units right?)");
  EXPECT_THAT(check({{"a", {"x"}}, {"b", {"xx"}}}, Units::character), HasSubstr("one symbol 'x'"));
  EXPECT_THAT(check({}, Units::space), HasSubstr("no targets"));
}

}  // namespace
}  // namespace attend
