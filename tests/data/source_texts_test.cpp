#include "attend/data/source_texts.h"

#include <gmock/gmock.h>

#include "attend/data/pairs.h"
#include "attend/data/text_codec.h"
#include "tests/support/files.h"

namespace attend {
namespace source_texts_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SourceTexts, AreSeparatedByOneTab) {
  const SourceTexts pair = source_texts("a b\tc", PairTexts::always);
  EXPECT_EQ(pair.first, "a b");
  EXPECT_EQ(pair.second, "c");
  EXPECT_EQ(source_texts("a b", PairTexts::optional).second, std::nullopt);
  const auto refusal = [](const std::string& text, PairTexts pairs) {
    return error_of([&] { source_texts(text, pairs); });
  };
  for (const PairTexts pairs : {PairTexts::optional, PairTexts::always}) {
    EXPECT_THAT(refusal("\tc", pairs), HasSubstr("the first text of the pair is empty"));
    EXPECT_THAT(refusal("a\t ", pairs), HasSubstr("the second text of the pair is empty"));
    EXPECT_THAT(refusal("a\tb\tc", pairs), HasSubstr("several TABs"));
  }
  EXPECT_THAT(refusal("a", PairTexts::always), HasSubstr("the source is one text"));
}

TEST(SourceTexts, AreSplitWithASeparator) {
  const TextCodec codec{.units = Units::space, .pairs = PairTexts::optional};
  const SourceTokens pair = codec.split_source("a b\tc");
  EXPECT_THAT(pair.names, ElementsAre("a", "b", pair_separator, "c"));
  EXPECT_EQ(pair.second, 3);
  EXPECT_EQ(codec.split_source("a b").second, 2);
  EXPECT_EQ(codec.margins(true).between, 1);
  EXPECT_EQ(codec.margins(false).between, 0);
}

TEST(SourceTexts, APromptPrecedesTheFirstOfTwo) {
  const TextCodec codec{.units = Units::space, .pairs = PairTexts::optional};
  const TextCodec prompted = codec.with_prompt("is it: ");
  const SourceTokens pair = prompted.split_source("a\tc");
  EXPECT_THAT(pair.names, ElementsAre("is", "it:", "a", pair_separator, "c"));
  EXPECT_EQ(pair.second, 4);
  EXPECT_THAT(prompted.split_source("a").names, ElementsAre("a"));
  EXPECT_THAT(prompted.with_prompt("").split_source("a\tc").names,
              ElementsAre("a", pair_separator, "c"));
  EXPECT_THAT(error_of([&] { (void)prompted.split_source("\tc"); }),
              HasSubstr("the first text of the pair is empty"));
  EXPECT_THAT(error_of([&] { (void)codec.with_prompt("a\xff"); }),
              HasSubstr("the prompt: invalid UTF-8 at byte 2"));
  EXPECT_THAT(error_of([] { (void)TextCodec().with_prompt("a"); }),
              HasSubstr("data.pairs is never"));
}

TEST(SourceTexts, PromptsAreNamedInTheConfiguration) {
  TextConfig text{.pairs = PairTexts::always,
                  .prompts = R"({"query": "is it: ", "none": ""})",
                  .default_prompt = "query"};
  EXPECT_EQ(make_codecs(text).source.prompt, "is it: ");
  EXPECT_EQ(make_codecs(text).target.prompt, "");
  text.default_prompt = "none";
  EXPECT_EQ(make_codecs(text).source.prompt, "");
  text.default_prompt = "quary";
  EXPECT_THAT(error_of([&] { (void)make_codecs(text); }),
              HasSubstr("data.default_prompt is 'quary', which data.prompts lacks"));
  text.prompts = "[]";
  EXPECT_THAT(error_of([&] { (void)make_codecs(text); }), HasSubstr("data.prompts is '[]'"));
}

TEST(SourceTexts, AreTheFirstColumnsOfALine) {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& lines, PairTexts pairs) {
    return read_pairs({.source = folder.write("x.tsv", lines), .pairs = pairs});
  };
  const std::vector<Example> examples = read("a\tb\tyes\nc\td e\tno\n", PairTexts::always);
  EXPECT_EQ(examples[0].source, "a\tb");
  EXPECT_THAT(examples[1].targets, ElementsAre("no"));
  EXPECT_EQ(read("a\tyes\nc\td\tno\n", PairTexts::optional)[1].source, "c\td");
  const auto refusal = [&](const std::string& line, PairTexts pairs) {
    return error_of([&] { read("a\tb\tyes\n" + line, pairs); });
  };
  EXPECT_THAT(refusal("a\tyes\n", PairTexts::always), HasSubstr("x.tsv:2: only one TAB"));
  EXPECT_THAT(refusal("a\n", PairTexts::optional), HasSubstr("x.tsv:2: no TAB"));
  EXPECT_THAT(refusal("a\tb\tc\tno\n", PairTexts::always),
              HasSubstr("x.tsv:2: more than two TABs"));
  EXPECT_THAT(refusal("a\t \tno\n", PairTexts::always),
              HasSubstr("x.tsv:2: the second text of the pair is empty"));
}

}  // namespace source_texts_test
}  // namespace attend
