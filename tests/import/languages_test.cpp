#include <gmock/gmock.h>

#include "attend/base/error.h"
#include "attend/inference/model.h"
#include "attend/models/model_folder.h"
#include "attend/models/transformer_config.h"
#include "attend/text/text_tokenizer.h"
#include "tests/import/foreign_folder.h"

namespace attend {
namespace languages_test {

using test::error_of;
using test::ForeignFolder;
using test::json;
using test::refused;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char *nllb = "M2M100ForConditionalGeneration",
                     *mbart = "MBartForConditionalGeneration";

// An imported folder.
struct Imported {
  explicit Imported(const ForeignFolder& given) {
    given.write(folder / "theirs");
    made = import_model(folder / "theirs", folder / "ours");
  }
  Model model(const ModelOptions& options = {}) const { return Model(folder / "ours", options); }
  PairModel parts() const { return load_pair_model(folder / "ours"); }

  test::TemporaryFolder folder;
  ImportedModel made;
};

std::vector<std::string> source_of(const Model& model, const std::string& text,
                                   const SearchOptions& options) {
  return model.answer({text}, options).at(0).source;
}

TEST(Languages, MarkSourcesAndAnswers) {
  const Imported imported{ForeignFolder(nllb)};
  EXPECT_EQ(imported.parts().text.source_language, "eng_Latn");
  EXPECT_EQ(imported.parts().text.target_language, "fra_Latn");
  const Model model = imported.model();
  SearchOptions search{.beam = 2, .maximum_length = 3};
  EXPECT_EQ(source_of(model, "cat", search).front(), "eng_Latn");
  Answer answer = model.answer({"cat"}, search).at(0);
  EXPECT_EQ(answer.best().tokens.front(), "fra_Latn");
  EXPECT_EQ(answer.best().log_probabilities.front(), 0);
  EXPECT_EQ(answer.best().tokens.size(), 4U) << "the language is not part of the maximum";
  search.source_language = "zho_Hans";
  search.target_language = "deu_Latn";
  answer = model.answer({"cat"}, search, {"ver"}).at(0);
  EXPECT_EQ(answer.source.front(), "zho_Hans");
  EXPECT_EQ(answer.source.back(), "[</s>]");
  EXPECT_EQ(answer.best().tokens.front(), "deu_Latn");
  EXPECT_LT(answer.best().log_probabilities[1], 0) << "a prefix has its own probability";
}

// A model in two languages answers as its requests in these languages.
TEST(Languages, MayBeChosenForAWholeModel) {
  const Imported imported{ForeignFolder(nllb)};
  ModelOptions options;
  options.source_language = "deu_Latn";
  options.target_language = "zho_Hans";
  SearchOptions search{.maximum_length = 4};
  const Answer whole = imported.model(options).answer({"the cat"}, search).at(0);
  search.source_language = options.source_language;
  search.target_language = options.target_language;
  const Answer one = imported.model().answer({"the cat"}, search).at(0);
  EXPECT_EQ(whole.source, one.source);
  EXPECT_EQ(whole.best().ids, one.best().ids);
  EXPECT_EQ(whole.best().log_probabilities, one.best().log_probabilities);
}

TEST(Languages, AreRefusedIfUnknown) {
  ForeignFolder folder(nllb);
  folder.files["generation_config.json"].erase("forced_bos_token_id");
  const Imported imported{folder};
  EXPECT_EQ(imported.parts().text.target_language, "");
  const Model model = imported.model();
  const auto refusal = [&](const std::string& from, const std::string& to) {
    SearchOptions search;
    search.source_language = from;
    search.target_language = to;
    return error_of([&] { model.answer({"cat"}, search); });
  };
  EXPECT_THAT(refusal("", ""), HasSubstr("translates into 4 languages, and none is chosen"));
  EXPECT_EQ(refusal("", "fra_Lat"), "the model has no language 'fra_Lat'; did you mean fra_Latn?");
  EXPECT_EQ(refusal("French", "fra_Latn"),
            "the model has no language 'French'; there are deu_Latn, eng_Latn, fra_Latn, zho_Hans");
  EXPECT_EQ(refusal("", "fra_Latn"), "");
  const Imported other{ForeignFolder("T5ForConditionalGeneration")};
  SearchOptions search;
  search.target_language = "fra_Latn";
  EXPECT_THAT(error_of([&] { other.model().answer({"cat"}, search); }),
              HasSubstr("has no languages; leave it out"));
}

// legacy_behaviour of NLLB.
TEST(Languages, MayFollowTheText) {
  ForeignFolder folder(nllb);
  folder.files["tokenizer_config.json"]["legacy_behaviour"] = true;
  folder.files["tokenizer_config.json"]["src_lang"] = "zho_Hans";
  const Model model = Imported(folder).model();
  SearchOptions search{.maximum_length = 2};
  EXPECT_EQ(source_of(model, "cat", search).back(), "zho_Hans");
  search.source_language = "deu_Latn";
  const std::vector<std::string> source = source_of(model, "cat", search);
  EXPECT_EQ(source.back(), "deu_Latn");
  EXPECT_EQ(source[source.size() - 2], "[</s>]");
}

// M2M100: ids of pieces are in vocab.json, and languages follow them.
TEST(Languages, MayFollowVocabularyAndPieces) {
  ForeignFolder folder(nllb);
  const json pieces = ForeignFolder(mbart).files["sentencepiece.bpe.model"];
  folder.files.erase("tokenizer.json");
  folder.files["sentencepiece.bpe.model"] = pieces;
  folder.files["tokenizer_config.json"] = {{"tokenizer_class", "M2M100Tokenizer"},
                                           {"src_lang", "de"}};
  folder.files["vocab.json"] = {{"<s>", 0},   {"<pad>", 1},     {"</s>", 2},
                                {"<unk>", 3}, {"\u2581the", 4}, {"\u2581sees", 5}};
  constexpr int64_t known = 6, languages = 100, catalan = known + 11;
  folder.files["generation_config.json"]["forced_bos_token_id"] = catalan;
  const int64_t depth = folder.tensors["model.shared.weight"].size(1);
  folder.config()["vocab_size"] = known + languages + 8;
  folder.tensors["model.shared.weight"] = at::rand({known + languages + 8, depth});
  const Imported imported{folder};
  EXPECT_EQ(imported.parts().text.source_language, "de");
  EXPECT_EQ(imported.parts().text.target_language, "ca");
  SearchOptions search{.maximum_length = 2};
  const Answer answer = imported.model().answer({"the sees"}, search).at(0);
  EXPECT_THAT(answer.source, ElementsAre("__de__", "\u2581the", "\u2581sees", "[</s>]"));
  EXPECT_EQ(answer.best().tokens.front(), "__ca__");
  EXPECT_EQ(imported.model().tokenise("the").front().id, known + 16);
}

TEST(Languages, OfATokenizerNameItsTokens) {
  json file = ForeignFolder(nllb).files["tokenizer.json"];
  const auto refusal = [&](const json& languages) {
    file["languages"] = languages;
    return error_of([&] { TextTokenizer::parse(file.dump(), "tokenizer.json"); });
  };
  EXPECT_THAT(refusal({{"French", "fra"}}),
              HasSubstr("languages.French is 'fra', which no token is"));
  EXPECT_THAT(refusal({{"a", "fra_Latn"}, {"b", "fra_Latn"}}),
              HasSubstr("as for another language"));
  EXPECT_THAT(refusal(3), HasSubstr("languages is not an object"));
  EXPECT_THAT(refusal({{"French", 3}}), HasSubstr("languages.French"));
  EXPECT_EQ(refusal({{"French", "fra_Latn"}}), "");
}

TEST(Languages, OfMBartHavePositionsOfEachStack) {
  const PairModel parts = Imported(ForeignFolder(mbart)).parts();
  ModelConfig config = parts.config;
  const auto& ours = config.of<TransformerConfig>();
  EXPECT_TRUE(ours.separate_positions);
  EXPECT_TRUE(ours.normalise_input);
  EXPECT_EQ(ours.maximum_source_length, 40);
  EXPECT_EQ(parts.network->maximum_answer_length(), 39);
  const auto weights = parts.network->named_parameters();
  EXPECT_EQ(weights["source_embedding.positions.table"].size(0), 40);
  EXPECT_EQ(weights["target_embedding.positions.table"].size(0), 40);
  EXPECT_FALSE(weights.contains("target_embedding.tokens.weight"));
}

TEST(Languages, MayStartAnswersAndFollowSources) {
  ForeignFolder folder = test::mbart_of_2020();
  folder.files["generation_config.json"]["max_length"] = 5;
  const int64_t romanian = folder.files["generation_config.json"]["decoder_start_token_id"];
  const Imported imported{folder};
  const PairModel parts = imported.parts();
  EXPECT_EQ(parts.text.source_language, "cs_CZ");
  EXPECT_EQ(parts.text.target_language, "");
  EXPECT_EQ(parts.decode.maximum_length, 4) << "without the start token";
  EXPECT_EQ(parts.codecs.source.tokenizer->languages().size(), 25U);
  ModelConfig config = parts.config;
  EXPECT_EQ(config.of<TransformerConfig>().shared()[Vocabulary::bos], romanian);
  EXPECT_EQ(parts.source_vocabulary.id("ro_RO"), Vocabulary::unknown + 1 + romanian);
  const Model model = imported.model();
  SearchOptions search{.maximum_length = 3};
  const Answer answer = model.answer({"cat"}, search).at(0);
  EXPECT_EQ(answer.source.back(), "cs_CZ");
  EXPECT_EQ(answer.source[answer.source.size() - 2], "[</s>]");
  EXPECT_LE(answer.best().tokens.size(), 3U);
  EXPECT_LT(answer.best().log_probabilities.front(), 0) << "no language is before the first token";
  search.source_language = "ro_RO";
  EXPECT_EQ(model.answer({"cat"}, search).at(0).source.back(), "ro_RO");
  const std::string text = model.answer({"cat"}, search).at(0).best().text;
  search.target_language = "ro_RO";
  EXPECT_EQ(model.answer({"cat"}, search).at(0).best().text, text) << "its own language";
  search.target_language = "en_XX";
  EXPECT_THAT(error_of([&] { model.answer({"cat"}, search); }),
              HasSubstr("the model answers only in ro_RO, not in 'en_XX'; leave"));
}

TEST(Languages, RefuseUnsupportedFoldersByName) {
  const auto config = [](const char* name, const char* key, const json& value) {
    return refused(name, [&](ForeignFolder& folder) { folder.config()[key] = value; });
  };
  for (const auto& [name, key, value] : std::vector<std::tuple<const char*, const char*, json>>{
           {nllb, "activation_function", "sine"},
           {nllb, "normalize_before", false},
           {nllb, "pad_token_id", 0},
           {nllb, "d_model", 3},
           {nllb, "decoder_ffn_dim", 7},
           {mbart, "static_position_embeddings", true},
           {mbart, "max_position_embeddings", 1},
           {mbart, "is_decoder", true}})
    EXPECT_THAT(config(name, key, value), HasSubstr(key));
  EXPECT_THAT(config(mbart, "max_position_embeddings", 41), HasSubstr("embed_positions.weight"));
  const auto tokenizer = [](const char* key, const json& value) {
    return refused(
        nllb, [&](ForeignFolder& folder) { folder.files["tokenizer_config.json"][key] = value; });
  };
  EXPECT_THAT(refused(mbart,
                      [](ForeignFolder& folder) {
                        folder.files["tokenizer_config.json"].erase("tokenizer_class");
                        folder.files["generation_config.json"].erase("decoder_start_token_id");
                        folder.config().erase("decoder_start_token_id");
                      }),
              AllOf(HasSubstr("config.json: has no decoder_start_token_id"),
                    HasSubstr("answers of MBartTokenizer begin with the token of their language")));
  EXPECT_THAT(tokenizer("tokenizer_class", "MBartTokenizer"),
              HasSubstr("NllbTokenizer, M2M100Tokenizer"));
  EXPECT_THAT(tokenizer("src_lang", "eng_Lat"), HasSubstr("did you mean eng_Latn?"));
  EXPECT_THAT(refused(nllb,
                      [](ForeignFolder& folder) {
                        folder.files["tokenizer_config.json"].erase("extra_special_tokens");
                        for (json& token : folder.files["tokenizer.json"]["added_tokens"])
                          token["special"] = token["id"] < 77;
                      }),
              HasSubstr("no special token marks a language"));
  EXPECT_THAT(refused(nllb,
                      [](ForeignFolder& folder) {
                        folder.tensors.erase("model.decoder.layer_norm.weight");
                      }),
              HasSubstr("decoder.layer_norm.weight"));
}

TEST(Languages, OfAFirstTokenWithoutLanguageAreNoted) {
  ForeignFolder folder(nllb);
  folder.files["generation_config.json"]["forced_bos_token_id"] = 0;
  const Imported imported{folder};
  EXPECT_THAT(imported.made.notes, testing::Contains(HasSubstr("marks no language")));
}

}  // namespace languages_test
}  // namespace attend
