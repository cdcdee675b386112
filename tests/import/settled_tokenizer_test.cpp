// Settings in files next to tokenizer.json override it, as in transformers 4.57 and 5.24.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attend/import/export_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"

namespace attend {
namespace settled_tokenizer_test {

using nlohmann::json;
using test::ForeignFolder;
using test::refused;
using testing::ElementsAre;
using testing::HasSubstr;

using Change = std::function<void(ForeignFolder&)>;

// Tokens of a text after a changed folder was imported.
std::vector<std::string> tokens_of(const std::string& name, const Change& change,
                                   const std::string& text) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign(name);
  foreign.files["tokenizer_config.json"]["tokenizer_class"] =
      name.starts_with("Bert") ? "BertTokenizer" : "RobertaTokenizer";
  change(foreign);
  foreign.write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  std::vector<std::string> tokens;
  for (const SourceToken& token : Model(folder / "ours").tokens_read(text))
    tokens.push_back(token.text);
  return tokens;
}

void change_by(json& document, const json& more) {
  if (!more.is_null()) document.update(more);
}

json& settings(ForeignFolder& foreign) { return foreign.files["tokenizer_config.json"]; }
json& tokenizer(ForeignFolder& foreign) { return foreign.files["tokenizer.json"]; }

TEST(SettledTokenizer, TakesAccentsAndLettersFromItsConfig) {
  const auto tokens = [](const json& here, const json& there) {
    return tokens_of(
        "BertModel",
        [&](ForeignFolder& foreign) {
          change_by(tokenizer(foreign)["normalizer"], here);
          change_by(settings(foreign), there);
        },
        "na\u00EFve Cat");
  };
  const std::vector<std::string> known = {"[CLS]", "naive", "cat", "[SEP]"},
                                 unknown = {"[CLS]", "[UNK]", "cat", "[SEP]"},
                                 large = {"[CLS]", "[UNK]", "[UNK]", "[SEP]"};
  EXPECT_EQ(tokens({{"strip_accents", false}}, {{"strip_accents", nullptr}}), known);
  EXPECT_EQ(tokens({}, {{"strip_accents", false}}), unknown);
  EXPECT_EQ(tokens({}, {{"do_lower_case", false}}), large);
  EXPECT_EQ(tokens({{"lowercase", false}}, {{"do_lower_case", true}}), known);
  // The default of the class, and a class without a default.
  EXPECT_EQ(tokens({{"lowercase", false}}, {}), known);
  EXPECT_EQ(tokens({{"lowercase", false}}, {{"tokenizer_class", "TokenizersBackend"}}), large);
}

TEST(SettledTokenizer, TakesTheSpaceBeforeATextFromItsConfig) {
  const auto tokens = [](bool here, const json& there) {
    return tokens_of(
        "RobertaForMaskedLM",
        [&](ForeignFolder& foreign) {
          tokenizer(foreign)["pre_tokenizer"]["add_prefix_space"] = here;
          change_by(settings(foreign), there);
        },
        "the");
  };
  EXPECT_THAT(tokens(true, {{"add_prefix_space", true}}),
              ElementsAre("[<s>]", "\u0120the", "[</s>]"));
  EXPECT_THAT(tokens(false, {{"add_prefix_space", true}}),
              ElementsAre("[<s>]", "\u0120the", "[</s>]"));
  EXPECT_EQ(tokens(true, {{"add_prefix_space", false}}), tokens(false, {}));
  EXPECT_EQ(tokens(true, {}), tokens(false, {}));
  EXPECT_THAT(refused("RobertaForMaskedLM",
                      [](ForeignFolder& foreign) {
                        tokenizer(foreign)["pre_tokenizer"]["add_prefix_space"] = true;
                        settings(foreign)["tokenizer_class"] = "PreTrainedTokenizerFast";
                        settings(foreign)["add_prefix_space"] = false;
                      }),
              HasSubstr("add_prefix_space is not what pre_tokenizer of"));
}

TEST(SettledTokenizer, SplitsSpecialTokensAsItsConfigSays) {
  const auto tokens = [](bool splits) {
    return tokens_of(
        "BertModel",
        [&](ForeignFolder& foreign) { settings(foreign)["split_special_tokens"] = splits; },
        "the [SEP]");
  };
  EXPECT_THAT(tokens(false), ElementsAre("[CLS]", "the", "[SEP]", "[SEP]"));
  const std::vector<std::string> split = tokens(true);
  EXPECT_GT(split.size(), 4U);
  EXPECT_EQ(std::count(split.begin(), split.end(), "[SEP]"), 1);
}

TEST(SettledTokenizer, CutsAtTheSideThatItsConfigSays) {
  const auto tokens = [](const json& side, const json& truncation) {
    return tokens_of(
        "BertModel",
        [&](ForeignFolder& foreign) {
          settings(foreign)["model_max_length"] = 4;
          settings(foreign)["truncation_side"] = side;
          tokenizer(foreign)["truncation"] = truncation;
        },
        "the cat sees the dog");
  };
  const json left = {{"direction", "Left"}, {"max_length", 9}};
  const std::vector<std::string> first = {"[CLS]", "the", "cat", "[SEP]"},
                                 last = {"[CLS]", "the", "dog", "[SEP]"};
  EXPECT_EQ(tokens("right", nullptr), first);
  EXPECT_EQ(tokens("left", nullptr), last);
  EXPECT_EQ(tokens(nullptr, left), last);
  EXPECT_EQ(tokens("right", left), first);
  EXPECT_THAT(refused("BertModel",
                      [](ForeignFolder& foreign) { settings(foreign)["truncation_side"] = "up"; }),
              HasSubstr("truncation_side is 'up', not left or right"));
}

TEST(SettledTokenizer, NamesOtherTokensAroundTexts) {
  EXPECT_THAT(refused("BertModel",
                      [](ForeignFolder& foreign) {
                        settings(foreign)["tokenizer_class"] = "BertTokenizer";
                        settings(foreign)["cls_token"] = "the";
                      }),
              HasSubstr("cls_token is 'the', and the post_processor of"));
}

TEST(SettledTokenizer, TakesTokensFromItsConfig) {
  const auto with = [](const json& decoder) {
    return tokens_of(
        "BertModel",
        [&](ForeignFolder& foreign) { settings(foreign)["added_tokens_decoder"] = decoder; },
        "the Newword, catsees");
  };
  // A token that only tokenizer_config.json has, and a word of the vocabulary that is found before
  // the text is split.
  EXPECT_THAT(with({{"153", {{"content", "Newword"}, {"normalized", false}}}}),
              testing::Contains("Newword"));
  EXPECT_THAT(with({{"146", {{"content", "cat"}, {"normalized", false}}}}),
              testing::IsSupersetOf({"[CLS]", "the", "cat", "sees", "[SEP]"}));
}

TEST(LongestText, IsTheModelsUnlessTheEncoderSaysIt) {
  const auto length = [](const json& longest, const json& encoder) {
    return tokens_of(
               "BertModel",
               [&](ForeignFolder& foreign) {
                 settings(foreign)["model_max_length"] = longest;
                 if (encoder.is_null()) return;
                 foreign.files["modules.json"] = {{{"path", ""}, {"type", "models.Transformer"}}};
                 foreign.files["sentence_bert_config.json"] = encoder;
               },
               "the cat sees the dog and the bird")
        .size();
  };
  EXPECT_EQ(length(1e30, nullptr), 10U);
  EXPECT_EQ(length(5, nullptr), 5U);
  EXPECT_EQ(length(5, json::object()), 5U);
  EXPECT_EQ(length(5, {{"max_seq_length", nullptr}}), 5U);
  EXPECT_EQ(length(5, {{"max_seq_length", 7}}), 7U);
  EXPECT_THAT(refused("BertModel",
                      [](ForeignFolder& foreign) { settings(foreign)["model_max_length"] = 0; }),
              HasSubstr("model_max_length is 0; set 1 or more"));
}

TEST(Decoders, AreNotNeededByModelsThatAnswerNoText) {
  const Change change = [](ForeignFolder& foreign) {
    tokenizer(foreign)["decoder"] = {{"type", "Sequence"}, {"decoders", json::array()}};
  };
  EXPECT_THAT(tokens_of("BertModel", change, "the"), ElementsAre("[CLS]", "the", "[SEP]"));
  EXPECT_THAT(refused("BertForMaskedLM", change), HasSubstr("decoder.type is 'Sequence'"));
}

// Gives a translator two tokens beyond vocab.json; the second is a language.
void add_tokens(ForeignFolder& foreign) {
  const auto before = foreign.config()["vocab_size"].get<int64_t>();
  const auto size = static_cast<int64_t>(foreign.files["vocab.json"].size());
  json& decoder = settings(foreign)["added_tokens_decoder"];
  decoder[std::to_string(size)] = {
      {"content", "Z\u00FCrich"}, {"normalized", true}, {"special", false}};
  decoder[std::to_string(size + 1)] = {
      {"content", ">>ita<<"}, {"normalized", false}, {"special", true}};
  settings(foreign)["extra_special_tokens"] = json::array({">>ita<<"});
  foreign.files["added_tokens.json"] = {{"Z\u00FCrich", size}, {">>ita<<", size + 1}};
  foreign.config()["vocab_size"] = foreign.config()["decoder_vocab_size"] = size + 2;
  for (auto& [name, tensor] : foreign.tensors)
    for (const int64_t axis : {0, 1})
      if (tensor.dim() == 2 && tensor.size(axis) == before)
        tensor = at::cat({tensor.narrow(axis, 0, size), tensor.narrow(axis, 0, 2)}, axis);
}

TEST(AddedTokens, OfATranslatorAreTokens) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("MarianMTModel");
  add_tokens(foreign);
  foreign.write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  const auto size = foreign.config()["vocab_size"].get<int64_t>();
  const auto check = [&](const std::string& ours) {
    const Model model(ours);
    const std::vector<SourceToken> tokens = model.tokenise(">>ita<< Z\u00FCrich");
    ASSERT_EQ(tokens.size(), 3U);
    EXPECT_EQ(tokens[0].text, ">>ita<<");
    EXPECT_EQ(tokens[0].id, size - 1);
    EXPECT_EQ(tokens[1].text, "Z\u00FCrich");
    EXPECT_EQ(tokens[1].id, size - 2);
    EXPECT_TRUE(tokens[1].is_known);
    EXPECT_EQ(model.tokens_read(">>ita<< Z\u00FCrich")[1].place.begin, 8U);
    EXPECT_FALSE(tokens[1].is_special);
    EXPECT_TRUE(tokens[2].is_special);
  };
  check(folder / "ours");
  // Also after export and import.
  export_model(folder / "ours", folder / "back");
  EXPECT_EQ(json::parse(std::ifstream(folder / "back/added_tokens.json")),
            foreign.files["added_tokens.json"]);
  EXPECT_EQ(json::parse(std::ifstream(folder / "back/vocab.json")), foreign.files["vocab.json"]);
  import_model(folder / "back", folder / "again");
  check(folder / "again");
}

TEST(AddedTokens, OfATranslatorFollowUponTheOthers) {
  EXPECT_THAT(refused("MarianMTModel",
                      [](ForeignFolder& foreign) {
                        foreign.files["added_tokens.json"] = {{"Z\u00FCrich", 5000}};
                      }),
              HasSubstr("does not have the id"));
  EXPECT_THAT(
      refused("MarianMTModel",
              [](ForeignFolder& foreign) { settings(foreign)["split_special_tokens"] = true; }),
      HasSubstr("split_special_tokens is true, which is not supported"));
}

TEST(TokenIds, AreThoseOfTheModelsOwnTokenizer) {
  const test::TemporaryFolder folder;
  for (const char* name : {"BertForMaskedLM", "GPT2LMHeadModel", "MarianMTModel"}) {
    ForeignFolder foreign(name);
    const std::string ours = folder / name;
    foreign.write(ours + "-theirs");
    import_model(ours + "-theirs", ours);
    const Model model(ours);
    const json vocabulary = foreign.files.contains("vocab.json")
                                ? foreign.files["vocab.json"]
                                : tokenizer(foreign)["model"]["vocab"];
    std::vector<int64_t> ids;
    for (const SourceToken& token : model.tokenise("the cat sees")) {
      const std::string spelled = token.text == "[</s>]" ? "</s>" : token.text;
      EXPECT_EQ(token.id, vocabulary.value(spelled, int64_t{-1})) << name << " " << token.text;
      EXPECT_TRUE(token.is_known);
      ids.push_back(token.id);
    }
    EXPECT_EQ(model.source_text(ids), "the cat sees") << name;
    EXPECT_THAT(test::error_of([&] { model.source_text({1'000'000}); }),
                HasSubstr("token id 1000000 does not exist; token ids of texts are 0 to"));
  }
  // A mask is known, because its own vector is read.
  for (const SourceToken& token : Model(folder / "BertForMaskedLM").tokenise("[MASK]"))
    EXPECT_TRUE(token.is_known) << token.text;
}

TEST(Exports, SayWhatTheirTokenizersTake) {
  const test::TemporaryFolder folder;
  const auto exported = [&](const std::string& name) {
    ForeignFolder(name).write(folder / (name + "-theirs"));
    import_model(folder / (name + "-theirs"), folder / name);
    export_model(folder / name, folder / (name + "-back"));
    return json::parse(std::ifstream(folder / (name + "-back/tokenizer_config.json")));
  };
  const json bert = exported("BertModel"), roberta = exported("RobertaForMaskedLM"),
             gpt2 = exported("GPT2LMHeadModel");
  for (const json& one : {bert, roberta, gpt2})
    EXPECT_EQ(one["model_input_names"], json({"input_ids", "attention_mask"}));
  EXPECT_EQ(bert["model_max_length"], 40);
  EXPECT_EQ(gpt2["model_max_length"],
            test::golden_case("GPT2LMHeadModel")["files"]["config.json"]["n_positions"]);
  EXPECT_EQ(bert["cls_token"], "[CLS]");
  EXPECT_EQ(roberta["sep_token"], "</s>");
  EXPECT_EQ(roberta["pad_token"], "<pad>");
  EXPECT_TRUE(roberta.contains("add_prefix_space"));
  const json config = json::parse(std::ifstream(folder / "RobertaForMaskedLM-back/config.json"));
  for (const json& token :
       test::golden_case("RobertaForMaskedLM")["files"]["tokenizer.json"]["added_tokens"])
    if (token["content"] == "<pad>") {
      EXPECT_EQ(config["pad_token_id"], token["id"]);
    }
}

}  // namespace settled_tokenizer_test
}  // namespace attend
