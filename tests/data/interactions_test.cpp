#include "attend/data/interactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace interactions_test {

using testing::ElementsAre;
using testing::HasSubstr;
using Items = std::vector<std::string>;

std::vector<ItemSequence> parse(const std::string& bytes, const InteractionConfig& config = {}) {
  return parse_interactions(bytes, "t.tsv", config, 1000);
}

std::string refusal(const std::string& bytes, const InteractionConfig& config = {}) {
  return test::error_of([&] { parse(bytes, config); });
}

TEST(Interactions, KeepTheOrderOfLinesWithoutTimes) {
  const std::vector<ItemSequence> wanted = {{"u", {"b", "a", "b"}}, {"v", {"c", "d"}}};
  EXPECT_EQ(parse("u b\nv c\nu\ta\nv  d \r\nu b"), wanted);
}

TEST(Interactions, SortByTimeAndKeepTies) {
  EXPECT_THAT(parse("u\ta\t7\nu\tb\t-1.5e1\nv\tx\t2\nu\tc\t7\nu\td\t3\nv\ty\t1\n"),
              ElementsAre(ItemSequence{"u", {"b", "d", "a", "c"}}, ItemSequence{"v", {"y", "x"}}));
}

TEST(Interactions, UsersMayHaveBlanks) {
  EXPECT_THAT(parse("Ann B\tx\nAnn B\ty\n"), ElementsAre(ItemSequence{"Ann B", {"x", "y"}}));
}

TEST(Interactions, MayEndWithBlankLines) {
  EXPECT_EQ(parse("u b\nu c\n\n \t\r\n"), parse("u b\nu c\n"));
}

TEST(Interactions, RefuseByLine) {
  EXPECT_THAT(refusal("u a\nu\n"), HasSubstr("t.tsv:2: 1 fields; a line is a user, an item"));
  EXPECT_THAT(refusal("u a b c d\n"), HasSubstr("t.tsv:1: 5 fields"));
  EXPECT_THAT(refusal("u a 1\n\nu b 2\n"), HasSubstr("t.tsv:2: 0 fields"));
  EXPECT_THAT(refusal("u a\nu b 2\n"), HasSubstr("t.tsv:2: 3 fields, and lines before it have 2"));
  EXPECT_THAT(refusal("\ta\n"), HasSubstr("t.tsv:1: the user is empty"));
  EXPECT_THAT(refusal("u\t \n"), HasSubstr("t.tsv:1: the item is empty"));
  EXPECT_THAT(refusal("u\ta b\n"), HasSubstr("t.tsv:1: item 'a b' has blanks"));
  EXPECT_THAT(refusal("u\ta \t3\n"), HasSubstr("item 'a ' has blanks"));
  EXPECT_THAT(refusal("u a 1\nu b noon\n"), HasSubstr("t.tsv:2: time 'noon' is not a number"));
  for (const char* time : {"inf", "nan", "1e999", "1x"})
    EXPECT_THAT(refusal(fmt::format("u a {}\n", time)), HasSubstr("is not a number")) << time;
  EXPECT_THAT(refusal("u \xff\n"), HasSubstr("t.tsv:1: "));
  EXPECT_THAT(refusal(""), HasSubstr("t.tsv: holds no user with two items"));
  EXPECT_THAT(refusal("u a\nv b\n"), HasSubstr("t.tsv: holds no user with two items"));
}

TEST(Interactions, RefuseATimeThatGoesBackWhereTheyAreInOrder) {
  const InteractionConfig config{.in_order = true};
  EXPECT_THAT(refusal("u a 5\nv x 1\nu b 4\n", config),
              HasSubstr("t.tsv:3: time 4 is before 5 of the same user"));
  EXPECT_EQ(parse("u a 5\nv x 1\nu b 5\nv y 2\n", config).size(), 2U);
}

TEST(Interactions, ReadTablesByTheNamesOfTheirColumns) {
  const test::TemporaryFolder folder;
  const std::string plain =
      folder.write("a.csv", "time,item,stars,user\n2,b,5,u\n1,\"a\",4,u\n3,c,1,v\n");
  std::vector<std::string> told;
  const auto tell = [&](const std::string& remark) { told.push_back(remark); };
  EXPECT_THAT(read_interactions(plain, {}, tell), ElementsAre(ItemSequence{"u", {"a", "b"}}));
  EXPECT_THAT(told, ElementsAre(HasSubstr("a.csv: 1 users have only one item"),
                                HasSubstr("users are read from the column 'user', items from "
                                          "'item', times from 'time'")));
  const std::string named = folder.write("b.csv", "userId,movieId,t\n1,10,9\n1,11,8\n");
  EXPECT_THAT(test::error_of([&] { read_interactions(named, {}); }),
              HasSubstr("b.csv: has no column 'user'; there are 'userId, movieId, t'; set "
                        "data.user_column"));
  InteractionConfig config{.user_column = "userId", .item_column = "movieId"};
  EXPECT_THAT(read_interactions(named, config), ElementsAre(ItemSequence{"1", {"10", "11"}}));
  config.time_column = "t";
  EXPECT_THAT(read_interactions(named, config), ElementsAre(ItemSequence{"1", {"11", "10"}}));
  config.time_column = "when";
  EXPECT_THAT(test::error_of([&] { read_interactions(named, config); }),
              HasSubstr("set data.time_column"));
  const std::string bad = folder.write("c.csv", "user,item\nu,a b\n");
  EXPECT_THAT(test::error_of([&] { read_interactions(bad, {}); }),
              HasSubstr("c.csv:2: item 'a b' has blanks"));
}

TEST(Interactions, LeaveBadLinesOutWhereTheyAreToldTo) {
  const test::TemporaryFolder folder;
  for (const auto& [name, text] : {std::pair{"a.txt", "u a 1\nu b x\nu c 0\n"},
                                   {"a.csv", "user,item,time\nu,a,1\nu,b,x\nu,c,0\n"}}) {
    std::vector<std::string> told;
    int64_t bad = 0;
    EXPECT_THAT(read_interactions(
                    folder.write(name, text), {},
                    [&](const std::string& remark) { told.push_back(remark); }, &bad),
                ElementsAre(ItemSequence{"u", {"c", "a"}}));
    EXPECT_EQ(bad, 1);
    EXPECT_THAT(
        told, ElementsAre(HasSubstr("time 'x' is not a number"),
                          HasSubstr("1 lines cannot be read and are left out"), HasSubstr("time")));
  }
}

// Remarks about a file.
std::vector<std::string> remarks(const std::string& name, const std::string& text,
                                 const InteractionConfig& config = {}) {
  const test::TemporaryFolder folder;
  std::vector<std::string> told;
  read_interactions(folder.write(name, text), config,
                    [&](const std::string& remark) { told.push_back(remark); });
  return told;
}

// MovieLens: u.data of 100K, ratings.dat of 1M.
TEST(Interactions, AreReadAsMovieLensWritesThem) {
  const std::vector<ItemSequence> wanted = {{"1", {"31", "10", "20"}}};
  EXPECT_EQ(parse("1\t10\t3\t881250949\n1\t20\t1\t881250950\n1\t31\t5\t881250900\n"), wanted);
  EXPECT_EQ(parse("1::10::3::881250949\n1::20::1::881250950\n1::31::5::881250900\n"), wanted);
  EXPECT_EQ(parse("1::10\n1::20\n").size(), 1U);
  EXPECT_EQ(parse("u std::map 1\nu std::set 2\n")[0].items[0], "std::map");
  EXPECT_THAT(remarks("u.data", "1\ta\t3\t7\n1\tb\t3\t8\n"),
              ElementsAre(HasSubstr("user, item, a rating that is not used, and time")));
}

TEST(Interactions, FindTheTimesOfATable) {
  const InteractionConfig films{.user_column = "userId", .item_column = "movieId"};
  const test::TemporaryFolder folder;
  const std::string path =
      folder.write("ml.csv", "userId,movieId,rating,timestamp\n1,a,5,9\n1,b,3,8\n");
  EXPECT_THAT(read_interactions(path, films), ElementsAre(ItemSequence{"1", {"b", "a"}}));
  EXPECT_THAT(remarks("a.csv", "user,item,timestamp,time\nu,a,1,2\nu,b,2,1\n"),
              ElementsAre(HasSubstr("times from 'time'")));
  EXPECT_THAT(remarks("a.csv", "user,item,Created_Date\nu,a,2\nu,b,1\n"),
              ElementsAre(HasSubstr("no times: the items of a user keep the order of the rows; "
                                    "data.time_column=Created_Date would sort them")));
  EXPECT_THAT(remarks("a.txt", "u a\nu b\n"), ElementsAre(HasSubstr("order of the lines")));
}

TEST(Interactions, SayThatTimesLookLikeRatings) {
  EXPECT_THAT(remarks("a.txt", "u a 5\nu b 5\nu c 5\nv a 3\nv b 3\nv c 3\n"),
              ElementsAre(HasSubstr("user, item and time"), HasSubstr("if they are ratings")));
  EXPECT_THAT(remarks("a.txt", "u a 1\nu b 2\nv a 1\nv b 2\n"), testing::SizeIs(1));
}

// Doubles of this size have steps of 256.
TEST(Interactions, CompareAllDigitsOfTimes) {
  EXPECT_EQ(parse("u a 1700000000000000100\nu b 1700000000000000000\nu c 1700000000000000050\n"),
            (std::vector<ItemSequence>{{"u", {"b", "c", "a"}}}));
  EXPECT_EQ(parse("u a 1700000000.000000002\nu b 1700000000.000000001\nu c 17e8\nu d -0.5\n"
                  "u e -1.25\nu f 0.5\n"),
            (std::vector<ItemSequence>{{"u", {"e", "d", "f", "c", "b", "a"}}}));
  EXPECT_THAT(refusal("u a 1.7e18\nu b 2\n"), HasSubstr("t.tsv:1: time '1.7e18' loses digits"));
  EXPECT_THAT(refusal("u a 9223372036854775808\n"), HasSubstr("loses digits"));
  EXPECT_THAT(refusal("u a 1700000000000000001\nu b 1700000000000000000\n", {.in_order = true}),
              HasSubstr("time 1700000000000000000 is before 1700000000000000001"));
}

TEST(Interactions, SayWhatIsWrongIfAllLinesAre) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "u a b c d\nv a b c d\n");
  int64_t bad = 0;
  EXPECT_THAT(test::error_of([&] { read_interactions(path, {}, {}, &bad); }),
              testing::AllOf(HasSubstr("2 lines cannot be read"), HasSubstr("a.txt:1: 5 fields")));
}

TEST(Interactions, ArePartedByTheirLastItems) {
  const std::vector<ItemSequence> sequences = {
      {"u", {"a", "b", "c", "d", "e"}}, {"v", {"f", "g"}}, {"w", {"h", "i", "j"}}};
  const auto shown = [](const std::vector<Example>& examples) {
    Items all;
    for (const Example& example : examples)
      all.push_back(example.source + ">" + example.targets[0]);
    return all;
  };
  EXPECT_THAT(shown(items_to_learn(sequences)), ElementsAre(">a b c", ">h"));
  EXPECT_THAT(shown(next_items(sequences, 1)), ElementsAre("a b c>d", "h>i"));
  EXPECT_THAT(shown(next_items(sequences)), ElementsAre("a b c d>e", "f>g", "h i>j"));
}

}  // namespace interactions_test
}  // namespace attend
