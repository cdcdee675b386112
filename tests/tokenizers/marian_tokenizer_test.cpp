#include "attend/tokenizers/marian_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/tokenizers/model_writer.h"

namespace attend {
namespace marian_tokenizer_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string model() {
  constexpr uint64_t unknown = 2, control = 3;
  return test::ModelWriter()
      .piece("</s>", 0, control)
      .piece("<unk>", 0, unknown)
      .piece("\u2581low", -1)
      .piece("\u2581", -2)
      .piece("er", -2)
      .text();
}

MarianTokenizer tokenizer() { return MarianTokenizer::parse(model(), "input"); }

// Expected tokens are from transformers' MarianTokenizer 5.24.0.
TEST(MarianTokenizer, KeepsALanguageWhole) {
  EXPECT_THAT(tokenizer().split(">>fra<< low"), ElementsAre(">>fra<<", "\u2581low"));
  EXPECT_THAT(tokenizer().split(">>fra<<low"), ElementsAre(">>fra<<", "\u2581low"));
  EXPECT_THAT(tokenizer().split(">>a<< >>b<<"), ElementsAre(">>a<<", "\u2581", ">>b<<"));
  // Only at the beginning, and only with its end.
  EXPECT_THAT(tokenizer().split("low >>"), ElementsAre("\u2581low", "\u2581", ">>"));
  EXPECT_THAT(tokenizer().split(">>low"), ElementsAre("\u2581", ">>low"));
}

TEST(MarianTokenizer, FindsSpecialTokensInTexts) {
  EXPECT_THAT(tokenizer().split("low</s> low<pad>"),
              ElementsAre("\u2581low", "</s>", "\u2581low", "<pad>"));
  EXPECT_THAT(tokenizer().split("<unk>"), ElementsAre("<unk>"));
  EXPECT_THAT(tokenizer().split("</s>>>fra<<"), ElementsAre("</s>", ">>fra<<"));
  EXPECT_THAT(tokenizer().split("low<"), ElementsAre("\u2581low", "<"));
  EXPECT_THAT(tokenizer().split(""), IsEmpty());
}

TEST(MarianTokenizer, JoinsWithoutSpecialTokens) {
  const std::vector<std::string> tokens = {"\u2581low", "er",   "<unk>",
                                           "\u2581low", "</s>", "<pad>"};
  EXPECT_EQ(tokenizer().join(tokens), "lower low");
  // Pieces of the other side and languages are kept as they are.
  const std::vector<std::string> others = {"\u2581eau", ">>fra<<", "\u2581low", "\u2581"};
  EXPECT_EQ(tokenizer().join(others), "eau>>fra<< low");
}

// As transformers' M2M100Tokenizer 5.24.0: languages are special tokens, and >>fra<< is text.
TEST(MarianTokenizer, MayHaveTokensOfLanguages) {
  const std::vector<AddedPiece> added = {{"__en__", true, "en"}, {"__ast__", true, "ast"}};
  const std::string bytes = with_added_pieces(model(), added);
  const MarianTokenizer languages = MarianTokenizer::parse(bytes, "input");
  ASSERT_EQ(languages.languages().size(), 2U);
  EXPECT_EQ(languages.languages()[1].language, "ast");
  EXPECT_EQ(languages.languages()[1].token, "__ast__");
  EXPECT_THAT(languages.split("low__ast__er"), ElementsAre("\u2581low", "__ast__", "\u2581", "er"));
  EXPECT_THAT(languages.split(">>fra<< low"), ElementsAre("\u2581", ">>fra<<", "\u2581low"));
  EXPECT_EQ(languages.join(std::vector<std::string>{"__en__", "\u2581low"}), "low");
  EXPECT_EQ(without_added_pieces(bytes, "input"), model());
  for (const std::string& field :
       {std::string("en"), std::string("en\0", 3), std::string("\0en", 3)})
    EXPECT_THAT(error_of([&] {
                  MarianTokenizer::parse(model() + test::ModelWriter().bytes(1002, field).text(),
                                         "input");
                }),
                HasSubstr("input: a language lacks its name or its token"));
}

// Expected tokens are from transformers 5.24.0 with add_tokens().
TEST(MarianTokenizer, FindsAddedTokens) {
  const std::string bytes =
      with_added_pieces(model(), {{"Z\u00FCrich"}, {"low"}, {">>ita<<", /*is_special=*/true}});
  const MarianTokenizer added = MarianTokenizer::parse(bytes, "input");
  EXPECT_THAT(added.split(" Z\u00FCrich er"), ElementsAre("Z\u00FCrich", "\u2581", "er"));
  EXPECT_THAT(added.split("Z\u00FCrichlow"), ElementsAre("Z\u00FCrich", "low"));
  EXPECT_THAT(added.split("er >>ita<<low"), ElementsAre("\u2581", "er", ">>ita<<", "low"));
  const std::vector<std::string> tokens = {"Z\u00FCrich", ">>ita<<", "\u2581low", "</s>"};
  EXPECT_EQ(added.join(tokens), "Z\u00FCrich low");
  EXPECT_EQ(without_added_pieces(bytes, "input"), model());
  EXPECT_EQ(added_pieces(bytes, "input").size(), 3U);
  EXPECT_TRUE(added_pieces(bytes, "input")[2].is_special);
  EXPECT_TRUE(added_pieces(model(), "input").empty());
  EXPECT_EQ(SentencePiece::parse(bytes, "input").size(),
            SentencePiece::parse(model(), "input").size());
}

TEST(MarianTokenizer, SaysWhereTokensAreInATextAsItWasGiven) {
  const std::string text = ">>fra<< low  lower</s>";
  std::vector<std::string> parts;
  for (const TokenSpan& place : tokenizer().places(text))
    parts.push_back(text.substr(place.begin, place.end - place.begin));
  EXPECT_THAT(parts, ElementsAre(">>fra<<", "low", "low", "er", "</s>"));
}

TEST(MarianVocabulary, HasEachIdOnce) {
  EXPECT_THAT(parse_vocabulary(R"({"b": 1, "a": 0})", "vocab.json"), ElementsAre("a", "b"));
  const auto refusal = [](const char* json) {
    return error_of([&] { parse_vocabulary(json, "vocab.json"); });
  };
  EXPECT_THAT(refusal(R"({"a": 0, "b": 2})"), HasSubstr("vocab.json: has the id '2'"));
  EXPECT_THAT(refusal(R"({"a": 0, "b": 0})"), HasSubstr("has the id 0 twice"));
  EXPECT_THAT(refusal(R"(["a"])"), HasSubstr("is not an object of tokens and ids"));
  EXPECT_THAT(refusal("{"), HasSubstr("vocab.json: "));
}

}  // namespace marian_tokenizer_test
}  // namespace attend
