#include "attend/data/tokenised.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/files.h"

namespace attend {
namespace tokenised_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const TextCodecs codecs = {{.units = Units::character}, {.units = Units::space}};

std::vector<std::string> tokens_of(const TokenisedTexts& texts, int64_t text) {
  std::vector<std::string> tokens;
  for (const int32_t number : texts[text])
    tokens.push_back(texts.tokens()[static_cast<size_t>(number)]);
  return tokens;
}

TEST(TokeniseExamples, KeepsTheTokensOfEachText) {
  const TokenisedExamples found =
      tokenise_examples({{"aba", {"x y", "x"}}, {"b", {"z x"}}}, codecs);
  ASSERT_EQ(found.sources.size(), 2);
  ASSERT_EQ(found.targets.size(), 3);
  EXPECT_THAT(tokens_of(found.sources, 0), ElementsAre("a", "b", "a"));
  EXPECT_THAT(tokens_of(found.sources, 1), ElementsAre("b"));
  EXPECT_THAT(tokens_of(found.targets, 0), ElementsAre("x", "y"));
  EXPECT_THAT(tokens_of(found.targets, 2), ElementsAre("z", "x"));
  EXPECT_THAT(found.targets.tokens(), ElementsAre("x", "y", "z"));
  EXPECT_EQ(found.targets.counts(), (WordCounts{{"x", 3}, {"y", 1}, {"z", 1}}));
}

TEST(TokeniseExamples, LeavesOutTargetsThatAreTooLong) {
  const std::vector<Example> examples = {
      {"a", {"x", "x y z"}}, {"b", {"x y z"}}, {"c", {"y x", "x x x x", "y"}}};
  const TokenisedExamples found = tokenise_examples(examples, codecs, 2);
  EXPECT_EQ(found.left_out, 3);
  ASSERT_EQ(found.examples.size(), 2U);
  EXPECT_EQ(found.examples[1].source, "c");
  EXPECT_THAT(found.examples[1].targets, ElementsAre("y x", "y"));
  ASSERT_EQ(found.targets.size(), 3);
  EXPECT_THAT(tokens_of(found.sources, 1), ElementsAre("c"));
  EXPECT_THAT(tokens_of(found.targets, 2), ElementsAre("y"));
}

TEST(TokeniseExamples, NamesOfFilesAreNoTexts) {
  TextCodecs file_codecs = codecs;
  file_codecs.source.names_file = true;
  const TokenisedExamples found = tokenise_examples({{"a.png", {"x"}}}, file_codecs);
  EXPECT_EQ(found.sources.size(), 0);
  EXPECT_EQ(found.targets.size(), 1);
}

TEST(CheckTargets, WantsTwoTokens) {
  const auto check = [](const std::vector<Example>& examples, Units units) {
    const TextCodecs both = {{.units = units}, {.units = units}};
    return error_of([&] { check_targets(tokenise_examples(examples, both).targets, "p.tsv"); });
  };
  EXPECT_EQ(check({{"a", {"x y"}}}, Units::space), "");
  EXPECT_EQ(check({{"a", {"x"}}, {"b", {"x", "y"}}}, Units::space), "");
  EXPECT_EQ(check({{"a", {"xy"}}}, Units::character), "");
  EXPECT_EQ(check({{"a", {"xy"}}, {"b", {"xy xy"}}}, Units::space),
            "p.tsv: every target is made of the one token 'xy'; at least two are needed to learn "
            "from (are --target-units right?)");
  EXPECT_THAT(check({{"a", {"x"}}, {"b", {"xx"}}}, Units::character), HasSubstr("one token 'x'"));
  EXPECT_THAT(check({}, Units::space), HasSubstr("no targets"));
}

}  // namespace tokenised_test
}  // namespace attend
