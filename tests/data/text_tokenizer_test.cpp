#include "attend/text/text_tokenizer.h"

#include <gmock/gmock.h>

#include "attend/data/text_codec.h"
#include "attend/text/vocabulary.h"
#include "tests/support/files.h"
#include "tests/tokenizers/model_writer.h"

namespace attend {
namespace text_tokenizer_test {

using testing::ElementsAre;
using testing::HasSubstr;

// A tokenizer like RoBERTa's: tokens around a text are spelled like fixed ones.
constexpr const char* file = R"({
  "added_tokens": [{"id": 0, "content": "<s>", "special": true},
                   {"id": 1, "content": "</s>", "special": true}],
  "normalizer": {"type": "Lowercase"},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 1]},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
  "truncation": {"max_length": 3},
  "model": {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##",
            "vocab": {"<s>": 0, "</s>": 1, "?": 2, "cat": 3, "##s": 4, "a\nb": 5}}})";

TEST(TextTokenizer, NamesTokensSoThatAVocabularyHoldsThem) {
  const TextTokenizer tokenizer = TextTokenizer::parse(file, "file");
  EXPECT_EQ(tokenizer.size(), 6);
  EXPECT_EQ(tokenizer.opening_tokens(), 1);
  EXPECT_EQ(tokenizer.closing_tokens(), 1);
  EXPECT_EQ(tokenizer.unknown(), "?");
  EXPECT_EQ(tokenizer.name(5), "<token:5>");
  EXPECT_EQ(tokenizer.name(7), "<token:7>");
  const std::vector<std::string> tokens = tokenizer.split("Cats cat dog");
  EXPECT_THAT(tokens, ElementsAre("[<s>]", "cat", "##s", "cat", "?", "[</s>]"));
  EXPECT_EQ(Vocabulary::build({tokens}).encode({"[<s>]"}).at(0) > Vocabulary::unknown, true);
  EXPECT_EQ(tokenizer.join(tokens), "cats cat ?");
  EXPECT_EQ(tokenizer.join({"cat", "<unk>", "[</s>]"}), "cat");
  EXPECT_TRUE(tokenizer.split("").empty());
}

TEST(TextTokenizer, SplitsTextsOfACodecAsTheyStand) {
  const test::TemporaryFolder folder;
  TextConfig text;
  text.source_units = tokenizer_units;
  EXPECT_THAT(test::error_of([&] { make_codecs(text); }), HasSubstr("set data.tokenizer"));
  text.tokenizer = folder.write("tokenizer.json", file);
  const TextCodecs codecs = make_codecs(text);
  EXPECT_THAT(codecs.source.split(" CAT\tcats "),
              ElementsAre("[<s>]", "cat", "cat", "##s", "[</s>]"));
  EXPECT_EQ(codecs.source.margins(false).before, 1);
  EXPECT_EQ(codecs.source.margins(false).after, 1);
  EXPECT_EQ(codecs.target.margins(false).before, 0);
  EXPECT_EQ(codecs.target.margins(false).after, 0);
  EXPECT_THAT(test::error_of([&] { codecs.source.split("\xff"); }), HasSubstr("UTF-8"));
  const TextConfig stored = with_codes_in(folder / "model", text);
  std::filesystem::create_directory(folder / "model");
  save_codes(codecs, text, folder / "model");
  EXPECT_EQ(test::contents(stored.tokenizer), file);
  text.source_units = "space";
  EXPECT_THAT(test::error_of([&] { make_codecs(text); }), HasSubstr("data.tokenizer = "));
}

// A translator's side: the end and unknown tokens, then the pieces low and er.
std::string pieces() {
  return test::ModelWriter()
      .piece("</s>", 0, 3)
      .piece("<unk>", 0, 2)
      .piece("\u2581low", -1)
      .piece("er", -2)
      .text();
}

TEST(TextTokenizer, SplitsByPiecesOfATranslator) {
  const TextTokenizer tokenizer = TextTokenizer::parse(pieces(), "source.spm");
  EXPECT_EQ(tokenizer.size(), 4);
  EXPECT_EQ(tokenizer.name(0), "[</s>]");
  EXPECT_EQ(tokenizer.name(9), "<token:9>");
  EXPECT_EQ(tokenizer.opening_tokens(), 0);
  EXPECT_EQ(tokenizer.closing_tokens(), 1);
  EXPECT_EQ(tokenizer.unknown(), "[<unk>]");
  const std::vector<std::string> tokens = tokenizer.split(">>fra<< lower");
  EXPECT_THAT(tokens, ElementsAre(">>fra<<", "\u2581low", "er", "[</s>]"));
  EXPECT_EQ(tokenizer.join({"\u2581low", "[<unk>]", "er", "[</s>]"}), "lower");
  const TextTokenizer without = tokenizer.without_special_tokens();
  EXPECT_THAT(without.split("lower"), ElementsAre("\u2581low", "er"));
  EXPECT_EQ(without.opening_tokens(), 0);
  EXPECT_EQ(without.closing_tokens(), 0);
  EXPECT_TRUE(tokenizer.split("").empty());
}

TEST(TextTokenizer, TargetsMayHaveTheirOwn) {
  const test::TemporaryFolder folder;
  TextConfig text;
  text.source_units = text.target_units = tokenizer_units;
  text.tokenizer = folder.write("source.spm", pieces());
  text.target_tokenizer = folder.write("tokenizer.json", file);
  const TextCodecs codecs = make_codecs(text);
  EXPECT_THAT(codecs.source.split("low"), ElementsAre("\u2581low", "[</s>]"));
  EXPECT_THAT(codecs.target.split("cats"), ElementsAre("cat", "##s"));
  const std::string model = folder / "model";
  std::filesystem::create_directory(model);
  save_codes(codecs, text, model);
  const TextConfig stored = with_codes_in(model, text);
  EXPECT_EQ(stored.tokenizer, model + "/source.spm");
  EXPECT_EQ(stored.target_tokenizer, model + "/target_tokenizer.json");
  EXPECT_EQ(test::contents(stored.tokenizer), pieces());
  EXPECT_EQ(test::contents(stored.target_tokenizer), file);
  text.target_units = "space";
  EXPECT_THAT(test::error_of([&] { make_codecs(text); }), HasSubstr("data.target_tokenizer = "));
}

}  // namespace text_tokenizer_test
}  // namespace attend
