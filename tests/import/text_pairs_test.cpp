#include <gmock/gmock.h>

#include "attend/import/export_model.h"
#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "attend/models/model_folder.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace text_pairs_test {

using test::ForeignFolder;
using test::json;
using test::refused;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Change = std::function<void(ForeignFolder&)>;

const char* const labels_class = "BertForSequenceClassification";
const char* const score_class = "RobertaForSequenceClassification";
const char* const settings_file = "config_sentence_transformers.json";

// The model that import makes of a changed folder, and its notes.
struct Imported {
  explicit Imported(
      const std::string& name, const Change& change = [](ForeignFolder&) {}) {
    ForeignFolder foreign(name);
    change(foreign);
    foreign.write(folder / "theirs");
    notes = import_model(folder / "theirs", folder / "ours").notes;
    description = load_description(folder / "ours");
  }

  test::TemporaryFolder folder;
  std::vector<std::string> notes;
  PairModel description;
};

TEST(Pairs, AreMarkedByTheTypesOfTheTokenizer) {
  const Imported imported(labels_class);
  EXPECT_EQ(imported.description.text.pairs, PairTexts::optional);
  const Model model(imported.folder / "ours");
  const std::vector<SourceToken> tokens = model.tokens_read("the cat\ta dog");
  std::vector<int> second, special;
  for (const SourceToken& token : tokens) {
    second.push_back(token.is_second);
    special.push_back(token.is_special);
  }
  EXPECT_THAT(second, ElementsAre(0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(special, ElementsAre(1, 0, 0, 1, 0, 0, 1));
  EXPECT_EQ(tokens[5].text, "dog");
  EXPECT_EQ(tokens[5].place.begin, 10U);
  EXPECT_EQ(tokens[5].place.end, 13U);
}

TEST(Pairs, LoseTheEndOfTheLongerText) {
  const Imported imported(labels_class);
  const Model model(imported.folder / "ours");
  ASSERT_EQ(model.maximum_source_length(), 14);
  std::vector<std::string> texts;
  for (const SourceToken& token :
       model.tokens_read("the cat sees the cat sees the cat sees the cat sees\tParis is"))
    texts.push_back(token.text);
  EXPECT_THAT(texts, ElementsAre("[CLS]", "the", "cat", "sees", "the", "cat", "sees", "the", "cat",
                                 "sees", "[SEP]", testing::_, testing::_, "[SEP]"));
}

// The vector of type 0 is then added to all positions.
TEST(Pairs, HaveNoTypesIfTheTokenizerPassesNone) {
  const auto without = [](ForeignFolder& foreign) {
    foreign.files["tokenizer_config.json"]["model_input_names"] = {"input_ids", "attention_mask"};
  };
  const Imported imported(labels_class, without), with(labels_class);
  const Model one(imported.folder / "ours"), other(with.folder / "ours");
  const auto first = [](const Model& model, const std::string& text) {
    return model.classify({text}).at(0).at(0).probability;
  };
  EXPECT_NEAR(first(one, "the cat"), first(other, "the cat"), 1e-6);
  EXPECT_GT(std::abs(first(one, "the cat\ta dog") - first(other, "the cat\ta dog")), 1e-4);
}

TEST(Pairs, AreNotReadIfVersionsOfTransformersDiffer) {
  const Imported imported(labels_class, [](ForeignFolder& foreign) {
    foreign.files["tokenizer_config.json"].erase("model_input_names");
    foreign.files["tokenizer_config.json"]["tokenizer_class"] = "PreTrainedTokenizerFast";
  });
  EXPECT_EQ(imported.description.text.pairs, PairTexts::never);
  ASSERT_EQ(imported.notes.size(), 1U);
  EXPECT_THAT(imported.notes[0], HasSubstr("write model_input_names with or without"));
}

TEST(CrossEncoder, NamesItsActivationInOneOfThreePlaces) {
  const auto target = [](const Change& change) {
    const Imported imported(score_class, [&](ForeignFolder& foreign) {
      foreign.config().erase("sentence_transformers");
      change(foreign);
    });
    EXPECT_THAT(imported.notes, IsEmpty());
    return std::pair(imported.description.text.target, imported.description.text.pairs);
  };
  using Kind = std::pair<TargetKind, PairTexts>;
  const Kind number{TargetKind::number, PairTexts::always};
  const Kind sigmoid{TargetKind::probability, PairTexts::always};
  const char* const identity = "torch.nn.modules.linear.Identity";
  const char* const whole = "config_sentence_transformers.json";
  EXPECT_EQ(target([](ForeignFolder&) {}), Kind(TargetKind::number, PairTexts::optional));
  EXPECT_EQ(target([&](ForeignFolder& foreign) {
              foreign.config()["sbert_ce_default_activation_function"] = identity;
            }),
            number);
  EXPECT_EQ(target([&](ForeignFolder& foreign) {
              foreign.config()["sentence_transformers"] = {{"activation_fn", identity}};
            }),
            number);
  EXPECT_EQ(target([&](ForeignFolder& foreign) {
              foreign.files[whole] = {{"model_type", "CrossEncoder"}, {"activation_fn", identity}};
            }),
            number);
  EXPECT_EQ(target([&](ForeignFolder& foreign) {
              foreign.files[whole] = {{"model_type", "CrossEncoder"}};
            }),
            sigmoid);
}

TEST(CrossEncoder, IsRefusedByWhatIsNotRead) {
  const auto refusal = [](const char* name, const json& document) {
    return refused(score_class, [&](ForeignFolder& foreign) { foreign.files[name] = document; });
  };
  const json whole = {{"model_type", "CrossEncoder"}};
  EXPECT_THAT(refused(score_class,
                      [](ForeignFolder& foreign) {
                        foreign.config()["sentence_transformers"] = {
                            {"activation_fn", "torch.nn.modules.activation.Softmax"}};
                      }),
              HasSubstr("which is not read; Identity and Sigmoid are"));
  EXPECT_THAT(refusal("sentence_bert_config.json", {{"transformer_task", "feature-extraction"}}),
              HasSubstr("transformer_task is"));
  const auto prompts = [&](const json& document) {
    return refused(score_class, [&](ForeignFolder& foreign) {
      foreign.files[settings_file] = document;
      foreign.files["modules.json"] = json::array();
    });
  };
  EXPECT_THAT(prompts({{"model_type", "CrossEncoder"},
                       {"default_prompt_name", "r"},
                       {"prompts", {{"q", "query: "}}}}),
              HasSubstr("default_prompt_name is 'r', which prompts lacks"));
  EXPECT_THAT(prompts({{"model_type", "CrossEncoder"}, {"prompts", {{"q", 1}}}}),
              HasSubstr("prompts has 'q' that is not a text"));
  EXPECT_THAT(refused("BertForMaskedLM",
                      [&](ForeignFolder& foreign) {
                        foreign.files["config_sentence_transformers.json"] = whole;
                      }),
              HasSubstr("is a cross-encoder, which scores pairs of texts"));
}

void add_prompts(ForeignFolder& foreign) {
  foreign.files[settings_file] = {{"model_type", "CrossEncoder"},
                                  {"prompts", {{"query", "the cat sees "}, {"plain", ""}}},
                                  {"default_prompt_name", "query"}};
  foreign.files["modules.json"] = json::array(
      {{{"path", ""}, {"type", "sentence_transformers.base.modules.transformer.Transformer"}}});
}

double score(const std::string& folder, const std::string& pair, const ModelOptions& options = {}) {
  return *Model(folder, options).numbers({pair}).at(0);
}

TEST(CrossEncoder, PutsItsPromptBeforeTheFirstText) {
  const Imported imported(score_class, add_prompts);
  const std::string ours = imported.folder / "ours", pair = "Paris\ta dog";
  const Imported without(score_class, [](ForeignFolder& foreign) {
    add_prompts(foreign);
    foreign.files.erase("modules.json");
  });
  const std::string plain = without.folder / "ours";
  EXPECT_EQ(without.description.text.prompts, "");
  EXPECT_EQ(score(ours, pair), score(plain, "the cat sees Paris\ta dog"));
  EXPECT_NE(score(ours, pair), score(plain, pair));
  EXPECT_EQ(score(ours, pair, {.prompt_name = "plain"}), score(plain, pair));
  EXPECT_EQ(score(ours, pair, {.prompt = "a dog "}), score(plain, "a dog Paris\ta dog"));
  EXPECT_THAT(test::error_of([&] { score(ours, pair, {.prompt_name = "quary"}); }),
              HasSubstr("did you mean query?"));
  EXPECT_THAT(test::error_of([&] { score(ours, pair, {.prompt_name = "query", .prompt = "a"}); }),
              HasSubstr("leave one out"));
  EXPECT_THAT(test::error_of([&] { score(plain, pair, {.prompt_name = "query"}); }),
              HasSubstr("the model has no named prompts"));
}

// Tokens of the prompt have no place in the text; later tokens have one.
TEST(CrossEncoder, PlacesTokensInTheTextWithoutThePrompt) {
  const Imported imported(score_class, add_prompts);
  const std::string pair = "a dog\tParis";
  std::vector<std::string> words;
  for (const SourceToken& token : Model(imported.folder / "ours").tokens_read(pair))
    if (token.place.end > 0)
      words.push_back(pair.substr(token.place.begin, token.place.end - token.place.begin));
  const Imported bare(score_class);
  std::vector<std::string> wanted;
  for (const SourceToken& token : Model(bare.folder / "ours").tokens_read(pair))
    if (token.place.end > 0)
      wanted.push_back(pair.substr(token.place.begin, token.place.end - token.place.begin));
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(words, wanted);
}

TEST(CrossEncoder, IsExportedWithItsPrompts) {
  const Imported imported(score_class, add_prompts);
  export_model(imported.folder / "ours", imported.folder / "again");
  import_model(imported.folder / "again", imported.folder / "back");
  const PairModel back = load_description(imported.folder / "back");
  EXPECT_EQ(back.text.prompts, imported.description.text.prompts);
  EXPECT_EQ(back.text.default_prompt, "query");
  EXPECT_EQ(score(imported.folder / "back", "Paris\ta dog"),
            score(imported.folder / "ours", "Paris\ta dog"));
}

// Weights, types, activation and the kind of sources survive.
TEST(Pairs, AreExportedAndReadBack) {
  for (const char* name : {labels_class, score_class}) {
    const Imported imported(name);
    export_model(imported.folder / "ours", imported.folder / "again");
    import_model(imported.folder / "again", imported.folder / "back");
    const PairModel back = load_description(imported.folder / "back");
    EXPECT_EQ(back.text.target, imported.description.text.target);
    EXPECT_EQ(back.text.pairs, imported.description.text.pairs);
    const Model model(imported.folder / "ours"), other(imported.folder / "back");
    const std::string pair = "the cat sees\ta dog";
    const Answer one = model.answer({pair}).at(0), two = other.answer({pair}).at(0);
    EXPECT_EQ(one.best().number, two.best().number);
    EXPECT_EQ(one.best().log_probabilities, two.best().log_probabilities);
  }
}

}  // namespace text_pairs_test
}  // namespace attend
