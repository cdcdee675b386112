#include "attend/data/span_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/data/tables.h"
#include "tests/support/files.h"

namespace attend {
namespace span_target_test {

using test::error_of;
using testing::HasSubstr;

std::string found(std::string_view target, std::string_view passage) {
  const auto span = find_span(target, passage);
  return span ? fmt::format("{}-{}", span->begin, span->end) : "-";
}

TEST(SpanTarget, IsTheFirstOccurrence) {
  EXPECT_EQ(found("car", "a car and a carpet"), "2-5");
  EXPECT_EQ(found("is", "naïve is it"), "7-9");
  EXPECT_EQ(found("", "a car"), "-");
  EXPECT_EQ(found("  ", "a car"), "-");
}

TEST(SpanTarget, IsAtTheGivenCharacter) {
  EXPECT_EQ(found("car\t12", "a car and a carpet"), "12-15");
  EXPECT_EQ(found("it\t9", "naïve is it"), "10-12");
  EXPECT_EQ(found("\t9", "a car"), "-");
  EXPECT_EQ(span_text("the car\t12"), "the car");
  EXPECT_EQ(span_text("the car"), "the car");
}

TEST(SpanTarget, MustBeInThePassage) {
  EXPECT_THAT(error_of([] { find_span("bus", "a car"); }),
              HasSubstr("the answer 'bus' does not occur in the passage"));
  EXPECT_THAT(error_of([] { find_span("Car", "a car"); }), HasSubstr("does not occur"));
  for (const char* target : {"car\t1", "car\t99"})
    EXPECT_THAT(error_of([&] { find_span(target, "a car"); }), HasSubstr("passage, which has 5"));
  for (const char* target : {"car\t-1", "car\tx", "car\t", "car\t2 3"})
    EXPECT_THAT(error_of([&] { find_span(target, "a car"); }), HasSubstr("not a number of"));
}

TEST(SpanTarget, HasAColumnOfItsOwn) {
  const test::TemporaryFolder folder;
  folder.write("x.tsv", "which?\ta car\tcar\nwhich?\ta car\tcar\t2\nwhich?\ta car\t\n");
  TextConfig text;
  text.target = TargetKind::span;
  text.pairs = PairTexts::always;
  const std::vector<Example> examples = read_examples({folder / "x.tsv"}, text);
  ASSERT_EQ(examples.size(), 3U);
  for (const Example& each : examples) EXPECT_EQ(each.source, "which?\ta car");
  EXPECT_EQ(examples[1].targets[0], "car\t2");
  EXPECT_EQ(examples[2].targets[0], "");
}

}  // namespace span_target_test
}  // namespace attend
