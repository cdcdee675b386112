#include "attend/text/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "attend/base/error.h"
#include "attend/data/pairs.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace csv_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs read(const std::string& bytes, const std::string& source = "", const std::string& target = "",
           int64_t maximum_line = 1000) {
  CsvReader reader(ByteReader(bytes, "t.csv"), source, target, maximum_line);
  Pairs pairs;
  for (std::string a, b; reader.next(a, b);) pairs.emplace_back(a, b);
  return pairs;
}

std::string refusal(const std::string& bytes, const std::string& source = "",
                    const std::string& target = "") {
  return test::error_of([&] { read(bytes, source, target); });
}

TEST(Csv, ReadsColumnsByName) {
  const std::string table = "id,text,stars\r\n1,good,5\n2,\"so, so\",3\r\n\n3, bad ,1";
  EXPECT_THAT(read(table, "text", "stars"),
              ElementsAre(Pair("good", "5"), Pair("so, so", "3"), Pair(" bad ", "1")));
  EXPECT_THAT(read(table, "stars", "id"),
              ElementsAre(Pair("5", "1"), Pair("3", "2"), Pair("1", "3")));
  EXPECT_THAT(read("\xEF\xBB\xBF"
                   "a,b\nx,y\n"),
              ElementsAre(Pair("x", "y")));
  EXPECT_THAT(read("\xEF\xBB\xBF"
                   "a,b\nx,y\n",
                   "a", "b"),
              ElementsAre(Pair("x", "y")));
  EXPECT_THAT(read("sep=,\r\na,b\nx,y\n"), ElementsAre(Pair("x", "y")));
  EXPECT_THAT(refusal("sep=,\n"), HasSubstr("is empty; a header is wanted"));
}

TEST(Csv, QuotesHoldAnything) {
  EXPECT_THAT(read("a,b\n\"he said \"\"no\"\"\",\"two\r\nlines\nor\tthree\"\n,\"\"\n"),
              ElementsAre(Pair("he said \"no\"", "two lines or three"), Pair("", "")));
}

// As Python's csv and pandas read it.
TEST(Csv, AQuoteWithinAFieldIsACharacter) {
  EXPECT_THAT(read("a,b\n5\" pipe,x\n\"5\"\" pipe\",\"y\"\n1\"\",2\"\n"),
              ElementsAre(Pair("5\" pipe", "x"), Pair("5\" pipe", "y"), Pair("1\"\"", "2\"")));
}

TEST(Csv, SeparatesByTabsInAFileNamedTsv) {
  CsvReader reader(ByteReader("id\ta\tb\n1\tsay \"x\t2,5\n\n2\t\"y\"\t\"\r\n3\tz\n", "t.TSV.gz"),
                   "b", "a", 1000);
  std::string source, target;
  ASSERT_TRUE(reader.next(source, target));
  EXPECT_EQ(source + "|" + target, "2,5|say \"x");
  ASSERT_TRUE(reader.next(source, target));
  EXPECT_EQ(source + "|" + target, "\"|\"y\"");
  EXPECT_THAT(test::error_of([&] { reader.next(source, target); }),
              HasSubstr("t.TSV.gz:5: has 2 fields, the header 3"));
}

TEST(Csv, JoinsTwoColumnsOfAPairOfTexts) {
  const std::string table = "id,one,score,two\n1,a b,0.5,\"c\td\"\n";
  EXPECT_THAT(read(table, "two\tone", "score"), ElementsAre(Pair("c d\ta b", "0.5")));
  EXPECT_THAT(refusal(table, "one\ttwo\tid", "score"), HasSubstr("t.csv: 3 columns of sources"));
  EXPECT_THAT(refusal(table, "one\tone", "score"), HasSubstr("'one' is given for both texts"));
  EXPECT_THAT(refusal(table, "one\tscore", "score"), HasSubstr("for sources and for targets"));
  EXPECT_THAT(refusal(table, "one\tthree", "score"), HasSubstr("has no column 'three'"));
  const test::TemporaryFolder folder;
  PairFiles files{folder.write("t.csv", table), "", "one\ttwo", "score"};
  EXPECT_THAT(test::error_of([&] { read_pairs(files); }), HasSubstr("set data.pairs = always"));
  files.pairs = PairTexts::always;
  EXPECT_EQ(read_pairs(files)[0].source, "a b\tc d");
}

TEST(Csv, RefusesAColumnWhoseNameIsThereTwice) {
  const std::string table = "text,label,text\na,x,b\n";
  EXPECT_THAT(refusal(table, "text", "label"), HasSubstr("t.csv: has 2 columns 'text'"));
  EXPECT_THAT(read("text,label,more,more\na,x,1,2\n", "text", "label"),
              ElementsAre(Pair("a", "x")));
  EXPECT_THAT(refusal("text,text\na,x\n"), HasSubstr("t.csv: has 2 columns 'text'"));
}

TEST(Csv, RefusesByLine) {
  EXPECT_THAT(refusal(""), HasSubstr("t.csv: is empty"));
  EXPECT_THAT(refusal("a,b,c\n1,2,3\n"), HasSubstr("has the columns 'a, b, c'; name two"));
  EXPECT_THAT(refusal("a,b\n", "a"), HasSubstr("name both"));
  EXPECT_THAT(refusal("a;b\n1;2\n"), HasSubstr("semicolons separate its columns; save"));
  EXPECT_THAT(refusal("a;b\n1;2\n", "a", "b"), HasSubstr("semicolons separate its columns"));
  EXPECT_THAT(refusal("a\tb\n1\t2\n"), HasSubstr("TABs separate its columns"));
  EXPECT_THAT(refusal("a|b\n1|2\n"), HasSubstr("bars (|) separate its columns; save it with c"));
  for (const char* table : {"a,b\n", "a;b\n", "a|b\n"})
    EXPECT_THAT(test::error_of([&] { CsvReader(ByteReader(table, "t.tsv"), "a", "b", 1000); }),
                HasSubstr("separate its columns; save it with TABs, or as .csv with commas"))
        << table;
  EXPECT_THAT(refusal("a,b\n", "a", "c"), HasSubstr("has no column 'c'; there are 'a, b'"));
  EXPECT_THAT(refusal("a,b\n", "a", "a"), HasSubstr("for sources and for targets"));
  EXPECT_THAT(refusal("a,b\n1,2\n\"x\ny\",3\n1,2,3\n"), HasSubstr("t.csv:5: has 3 fields"));
  EXPECT_THAT(refusal("a,b\n\"\n\nx,3\n"), HasSubstr("t.csv:2: the quotes"));
  EXPECT_THAT(refusal("a,b\n\"\n\nx\",3\n\n1,2,3\n"), HasSubstr("t.csv:6: has 3 fields"));
  EXPECT_THAT(refusal("a,b\n1,2\n\"x\"y,3\n"), HasSubstr("t.csv:3: text after the quote"));
  EXPECT_THAT(refusal("a,b\n1,2\n\"x,3\n4,5\n"), HasSubstr("t.csv:3: the quotes"));
  EXPECT_THAT(refusal(std::string("a,b\n1,\0\n", 8)), HasSubstr("t.csv:2: holds a NUL"));
  EXPECT_THAT(refusal("a,b\n1,\"" + std::string(1001, 'x')),
              HasSubstr("t.csv:2: the row has over"));
}

TEST(Csv, PairsComeFromFilesOfThatName) {
  const test::TemporaryFolder folder;
  const std::string table = "word,sound\nab,A B\nab,\"A, B\"\n";
  for (const std::string name : {"t.csv", "t.csv.gz", "t.csv.xz", "t.CSV", "t.Csv.GZ"}) {
    const std::string bytes = name == "t.csv.xz"                         ? test::xz(table)
                              : name == "t.csv.gz" || name == "t.Csv.GZ" ? test::gzip(table)
                                                                         : table;
    std::vector<std::string> told;
    const auto examples = read_pairs({folder.write(name, bytes)},
                                     [&](const std::string& remark) { told.push_back(remark); });
    ASSERT_EQ(examples.size(), 2U);
    EXPECT_THAT(examples[1].targets, ElementsAre("A, B"));
    EXPECT_THAT(
        told, ElementsAre(folder / name + ": the first row names the columns 'word' and 'sound'"));
  }
  const std::string other = folder.write("t.txt", table);
  EXPECT_EQ(read_pairs({other, "", "sound", "word"}).size(), 2U) << "columns say that it is CSV";
  const auto error = [&](const std::string& bytes) {
    return test::error_of([&] { read_pairs({folder.write("bad.csv", bytes)}); });
  };
  EXPECT_THAT(error("a,b\nx, \n"), HasSubstr("bad.csv:2: the target is empty"));
  EXPECT_THAT(error("a,b\nx,\xff\n"), HasSubstr("bad.csv:2: "));
  EXPECT_THAT(error("a,b\n"), HasSubstr("is empty"));
}

// Many line breaks in one field: each byte is moved once, not once per preceding line break.
TEST(Csv, TakesTimeInProportionToARow) {
  std::string field;
  for (int i = 0; i < 500'000; ++i) field += "\r\n";
  const auto pairs = read("a,b\n\"" + field + "\",x\n", "", "", 1 << 21);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].first, std::string(500'000, ' '));
}

// If a row cannot be parsed, the rows before it in the same block are still returned.
TEST(Csv, TellsAFaultBehindTheRowsBeforeIt) {
  CsvReader reader(ByteReader("a,b\n1,2\n3\n4,5\n\"x\"y,3\n6,7\n", "t.csv"), "", "", 1000);
  EXPECT_THAT(reader.columns(), ElementsAre("a", "b"));
  std::string a, b;
  EXPECT_TRUE(reader.next(a, b));
  EXPECT_THAT(test::error_of([&] { reader.next(a, b); }), HasSubstr("t.csv:3: has 1 fields"));
  EXPECT_TRUE(reader.goes_on());
  EXPECT_TRUE(reader.next(a, b));
  EXPECT_EQ(a, "4");
  EXPECT_THAT(test::error_of([&] { reader.next(a, b); }),
              HasSubstr("t.csv:5: text after the quote"));
  EXPECT_EQ(reader.line(), 5);
  EXPECT_TRUE(reader.goes_on());
  EXPECT_TRUE(reader.next(a, b));
  EXPECT_EQ(a, "6");
  EXPECT_FALSE(reader.next(a, b));
}

TEST(Csv, GoesOnBehindALineThatIsNoRow) {
  const test::TemporaryFolder folder;
  // The long line is read in several pieces.
  const std::string path =
      folder.write("t.csv", "a,b\n\"x\"y,3\n1,2\n" + std::string(1 << 21, 'z') +
                                ",4\n\"5\"5,5\n\n\"6\n6\",6\n\"x\"y");
  int64_t bad = 0;
  std::vector<std::string> told;
  const auto examples = read_pairs(
      {path}, [&](const std::string& remark) { told.push_back(remark); }, &bad);
  ASSERT_EQ(examples.size(), 2U);
  EXPECT_EQ(examples[1].source, "6 6");
  EXPECT_EQ(examples[1].line, 7);
  EXPECT_EQ(bad, 4);
  EXPECT_THAT(told, ElementsAre(HasSubstr("t.csv:2: text after"), HasSubstr("t.csv:4: the row has"),
                                HasSubstr("t.csv:5: text after"), HasSubstr("t.csv:9: text after"),
                                HasSubstr("the first row names"), HasSubstr("4 lines cannot")));
}

// The pairing of its quotes is ambiguous.
TEST(Csv, StopsBehindARowOfSeveralLinesThatIsNone) {
  CsvReader reader(ByteReader("a,b\n\"x\ny\"z,3\n6,7\n", "t.csv"), "", "", 1000);
  std::string a, b;
  EXPECT_THAT(test::error_of([&] { reader.next(a, b); }), HasSubstr("t.csv:2: text after"));
  EXPECT_FALSE(reader.goes_on());
}

std::string in_csv(const std::string& field) {
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

RC_GTEST_PROP(CsvProperties, WhatIsQuotedComesBack, (const std::vector<std::string>& fields)) {
  Pairs wanted;
  std::string table = "a,b\n";
  for (const std::string& field : fields) {
    std::string kept;
    for (const char c : field)
      if (c != '\0' && c != '\r' && c != '\n' && c != '\t') kept += c;
    wanted.emplace_back(kept, "x");
    table += in_csv(kept) + ",x\n";
  }
  RC_ASSERT(read(table, "", "", 1 << 20) == wanted);
}

}  // namespace csv_test
}  // namespace attend
