#include "attend/data/label_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/data/tables.h"
#include "attend/data/text_codec.h"
#include "tests/support/files.h"

namespace attend {
namespace label_target_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(LabelTarget, IsSplitAtTheSeparator) {
  EXPECT_THAT(split_labels("b|big cat| a ", "|"), ElementsAre("b", "big cat", "a"));
  EXPECT_THAT(split_labels("one", "|"), ElementsAre("one"));
  EXPECT_THAT(split_labels(" ", "|"), IsEmpty());
  EXPECT_THAT(split_labels("a, b", ", "), ElementsAre("a", "b"));
  EXPECT_THAT(split_labels(" a  b", " "), ElementsAre("a", "b"));
}

TEST(LabelTarget, HasNoEmptyOrRepeatedLabels) {
  for (const char* target : {"a||b", "|a", "a|", "|", "a| |b"})
    EXPECT_THAT(error_of([&] { split_labels(target, "|"); }), HasSubstr("has an empty label"));
  for (const char* target : {"a|b|a", "a| a"})
    EXPECT_THAT(error_of([&] { split_labels(target, "|"); }), HasSubstr("label 'a' twice"));
  EXPECT_THAT(error_of([] { split_labels("a b a", " "); }), HasSubstr("label 'a' twice"));
}

TEST(LabelTarget, IsReadWithItsLine) {
  const test::TemporaryFolder folder;
  TextConfig text{.source_units = "space", .target_units = "line", .target = TargetKind::labels};
  const auto read = [&](const char* name, const char* content) {
    return read_examples({folder.write(name, content)}, text);
  };
  const auto examples = read("a.csv", "text,labels\nx,a|b\ny,\n");
  ASSERT_EQ(examples.size(), 2U);
  const TextCodec codec = make_codecs(text).target;
  EXPECT_THAT(codec.split(examples[0].targets[0]), ElementsAre("a", "b"));
  EXPECT_THAT(codec.split(examples[1].targets[0]), IsEmpty());
  EXPECT_EQ(codec.join({"a", "b"}), "a|b");
  EXPECT_EQ(read("a.tsv", "x\ta\ny\t\n").size(), 2U);
  EXPECT_THAT(error_of([&] { read("b.tsv", "x\ta\ny\ta||b\n"); }),
              testing::AllOf(HasSubstr("b.tsv:2: "), HasSubstr("empty label")));
  text.target = TargetKind::text;
  EXPECT_THAT(error_of([&] { read("c.tsv", "y\t\n"); }), HasSubstr("the target, after the TAB"));
}

}  // namespace label_target_test
}  // namespace attend
