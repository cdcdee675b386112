#include "attend/text/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/data/pairs.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace json_lines_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs read(const std::string& bytes, const std::string& source = "text",
           const std::string& target = "label") {
  JsonLinesReader reader(ByteReader(bytes, "t.jsonl"), source, target, 1000);
  Pairs pairs;
  for (std::string a, b; reader.next(a, b);) pairs.emplace_back(a, b);
  return pairs;
}

std::string refusal(const std::string& bytes, const std::string& source = "text",
                    const std::string& target = "label") {
  return error_of([&] { read(bytes, source, target); });
}

TEST(JsonLines, ReadsTwoMembers) {
  EXPECT_THAT(read("{\"text\": \"a\\tb\\nc \\u00e9\", \"id\": null, \"label\": \"x\"}\r\n"
                   " \n"
                   " {\"label\": 2, \"text\": true}\n"
                   "{\"label\": -0.5, \"text\": \"\"}"),
              ElementsAre(Pair("a b c é", "x"), Pair("true", "2"), Pair("", "-0.5")));
}

TEST(JsonLines, JoinsTwoMembersOfAPairOfTexts) {
  JsonLinesReader reader(ByteReader("{\"a\": \"x\", \"b\": \"y\\tz\", \"c\": 1}", "t.jsonl"),
                         "a\tb", "c", 1000);
  std::string source, target;
  ASSERT_TRUE(reader.next(source, target));
  EXPECT_EQ(source, "x\ty z");
  EXPECT_THAT(reader.columns(), ElementsAre("a, b", "c"));
}

TEST(JsonLines, RefusesByLine) {
  EXPECT_THAT(refusal("{}", ""),
              HasSubstr("t.jsonl: name two members of its objects with --source"));
  EXPECT_THAT(refusal(" \n\n", ""), HasSubstr("t.jsonl: is empty; an object for each line"));
  EXPECT_THAT(refusal("", "a", "a"), HasSubstr("'a' is given for sources and for targets"));
  const std::string good = "{\"text\": \"a\", \"label\": \"b\"}\n\n";
  EXPECT_THAT(refusal(good + "{\"text\": 1, \"lable\": 2}"),
              HasSubstr("t.jsonl:3: has no member 'label'; there are 'lable, text'"));
  for (const auto& [value, name] :
       {std::pair{"null", "null"}, {"[1]", "an array"}, {"{}", "an object"}})
    EXPECT_THAT(refusal(good + "{\"text\": 1, \"label\": " + value + "}"),
                HasSubstr(std::string("t.jsonl:3: 'label' is ") + name + "; a string"));
  EXPECT_THAT(refusal(good + "[{\"text\": 1}]"), HasSubstr("t.jsonl:3: is not an object; each"));
  EXPECT_THAT(refusal("{\n\"text\": 1}"), HasSubstr("t.jsonl:1: is not an object"));
  EXPECT_THAT(refusal(good + "{\"text\": 1,}"),
              HasSubstr("t.jsonl:3: is not JSON at byte 12; mend the line"));
  EXPECT_THAT(refusal("{'text': 'a', 'label': 1}"),
              HasSubstr("t.jsonl:1: is not JSON at byte 2; names and texts need double quotes"));
  for (const char* number : {"NaN", "Infinity", "-Infinity"})
    EXPECT_THAT(refusal(fmt::format("{{\"text\": 1, \"label\": {}}}", number)),
                HasSubstr("NaN and Infinity are not numbers of JSON; leave such lines out"))
        << number;
  EXPECT_THAT(refusal(good + "{\"text\": \"" + std::string(1001, 'x') + "\"}"),
              HasSubstr("t.jsonl:3: the line has over"));
  EXPECT_THAT(refusal("{\"text\": " + std::string(70, '[') + "}"),
              HasSubstr("nested over 64 deep"));
}

TEST(JsonLines, GoesOnAfterABadLine) {
  JsonLinesReader reader(ByteReader("{\"text\": 1}\n{\"text\": 2, \"label\": 3}\n", "t.jsonl"),
                         "text", "label", 1000);
  std::string source, target;
  EXPECT_THAT(error_of([&] { reader.next(source, target); }), HasSubstr("t.jsonl:1: "));
  ASSERT_TRUE(reader.goes_on() && reader.next(source, target));
  EXPECT_EQ(source + target, "23");
  EXPECT_EQ(reader.line(), 2);
  EXPECT_THAT(reader.columns(), ElementsAre("text", "label"));
}

TEST(JsonLines, PairsComeFromFilesOfThatName) {
  const test::TemporaryFolder folder;
  const std::string lines = "{\"text\": \"ab\", \"label\": \"x\"}\n{\"text\": \"c\"}\n";
  for (const std::string name : {"t.jsonl", "t.ndjson", "t.JSON", "t.jsonl.gz"}) {
    const std::string path = folder.write(name, name.ends_with("gz") ? test::gzip(lines) : lines);
    int64_t bad = 0;
    const auto examples = read_pairs({path, "", "text", "label"}, {}, &bad);
    ASSERT_EQ(examples.size(), 1U);
    EXPECT_EQ(examples[0].source + examples[0].targets[0], "abx");
    EXPECT_EQ(bad, 1);
    EXPECT_THAT(error_of([&] { read_pairs({path}); }), HasSubstr("name two members"));
  }
  const std::string empty = folder.write("e.jsonl", "\n");
  EXPECT_THAT(error_of([&] {
                read_pairs({empty, "", "text", "label"});
              }),
              HasSubstr("e.jsonl: is empty; an object for each line is wanted"));
}

}  // namespace json_lines_test
}  // namespace attend
