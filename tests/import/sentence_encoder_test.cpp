#include <gmock/gmock.h>

#include "attend/import/export_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace sentence_encoder_test {

using test::ForeignFolder;
using test::json;
using testing::DoubleNear;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Pointwise;

const json& golden_sentences() { return test::golden()["sentences"]; }

// Writes the sentence encoder of the golden file.
void write_golden(const std::string& folder) {
  ForeignFolder foreign("BertModel");
  foreign.files.update(golden_sentences()["files"]);
  foreign.write(folder);
  for (const auto& [name, shapes] : golden_sentences()["tensors"].items())
    write_safetensors(folder + "/" + name, {test::tensors_of({{"tensors", shapes}}), {}});
}

std::vector<std::string> texts() { return golden_sentences()["texts"]; }

// All poolings without the tokens of a prompt, a norm, length 1 and a cut; three prompts. Numbers
// of sentence-transformers near 1 after two layers in float32.
TEST(SentenceEncoder, AnswersAsSentenceTransformersDoes) {
  const test::TemporaryFolder folder;
  write_golden(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  const Model model(folder / "ours");
  for (const auto& [name, vectors] : golden_sentences()["answers"].items()) {
    const std::vector<Embedding> found = model.embed(texts(), model.prompt(name));
    for (size_t i = 0; i < texts().size(); ++i)
      EXPECT_THAT(found[i].whole,
                  Pointwise(DoubleNear(1e-5), vectors[i].get<std::vector<double>>()))
          << name << ": " << texts()[i];
  }
  EXPECT_EQ(model.embed(texts())[1].whole, model.embed(texts(), "find the cat: ")[1].whole);
  EXPECT_THAT(test::error_of([&] { (void)model.prompt("quary"); }), HasSubstr("mean query?"));
}

TEST(SentenceEncoder, IsExportedWhole) {
  const test::TemporaryFolder folder;
  write_golden(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  export_model(folder / "ours", folder / "written");
  const auto file = [&](const std::string& name) {
    return json::parse(std::ifstream(folder / ("written/" + name)));
  };
  const json& files = golden_sentences()["files"];
  EXPECT_EQ(file("1_Pooling/config.json"), files["1_Pooling/config.json"]);
  EXPECT_EQ(file("2_LayerNorm/config.json"), files["2_LayerNorm/config.json"]);
  for (const auto& [key, value] : files["config_sentence_transformers.json"].items())
    EXPECT_EQ(file("config_sentence_transformers.json")[key], value) << key;
  import_model(folder / "written", folder / "again");
  const std::vector<Embedding> first = Model(folder / "ours").embed(texts());
  const std::vector<Embedding> again = Model(folder / "again").embed(texts());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(again[i].whole, first[i].whole);
}

// Prompts of several lines, with quotes and backslashes, stay as they are in config.toml.
TEST(SentenceEncoder, KeepsTheCharactersOfPrompts) {
  const test::TemporaryFolder folder;
  write_golden(folder / "theirs");
  const std::string prompt = "Instruct: \"find\" \\ it\nQuery:\t\u00FC\u4EAC'''\u0001 ";
  const json document = {{"prompts", {{"a \"name\"", prompt}}}};
  std::ofstream(folder / "theirs/config_sentence_transformers.json") << document.dump();
  import_model(folder / "theirs", folder / "ours");
  EXPECT_EQ(Model(folder / "ours").prompt("a \"name\""), prompt);
  export_model(folder / "ours", folder / "written");
  EXPECT_EQ(
      json::parse(std::ifstream(folder / "written/config_sentence_transformers.json"))["prompts"],
      document["prompts"]);
}

TEST(SentenceEncoder, LeavesBlankTextsWithoutPrompt) {
  const test::TemporaryFolder folder;
  write_golden(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  for (const Embedding& none : Model(folder / "ours").embed({"", " "})) {
    EXPECT_TRUE(none.whole.empty());
    EXPECT_TRUE(none.tokens.empty());
  }
}

TEST(SentenceEncoder, NamesALayerNormThatDoesNotFit) {
  const auto refusal = [](const json& document) {
    const test::TemporaryFolder folder;
    write_golden(folder / "theirs");
    std::ofstream(folder / "theirs/2_LayerNorm/config.json") << document.dump();
    return test::error_of([&] { import_model(folder / "theirs", folder / "ours"); });
  };
  EXPECT_THAT(refusal({{"dimension", 8}}), HasSubstr("dimension is 8, and vectors have depth 48"));
  EXPECT_THAT(refusal({{"dimension", 48}, {"eps", 1}}), HasSubstr("eps"));
  EXPECT_THAT(refusal(json::object()), HasSubstr("has no dimension"));
}

// The vector of a text by a sentence encoder with these files.
std::vector<float> vector_of(const json& files, const std::string& text) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("BertModel");
  foreign.files["modules.json"] = {{{"path", ""}, {"type", "base.modules.transformer.Transformer"}},
                                   {{"path", "1_Pooling"}, {"type", "modules.pooling.Pooling"}},
                                   {{"path", "2_Dropout"}, {"type", "modules.dropout.Dropout"}}};
  foreign.files["1_Pooling/config.json"] = {{"embedding_dimension", 8}, {"pooling_mode", {"mean"}}};
  foreign.files.update(files);
  foreign.write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  return Model(folder / "ours").embed({text})[0].whole;
}

TEST(SentenceEncoder, KeepsTheFirstNumbers) {
  const std::vector<float> whole = vector_of(json::object(), "the cat");
  const json cut = {{"config_sentence_transformers.json",
                     {{"model_type", "SentenceTransformer"}, {"truncate_dim", 3}}}};
  EXPECT_THAT(vector_of(cut, "the cat"), ElementsAreArray(whole.begin(), whole.begin() + 3));
  const json more = {{"config_sentence_transformers.json", {{"truncate_dim", 9}}}};
  EXPECT_EQ(vector_of(more, "the cat"), whole);
}

TEST(SentenceEncoder, PutsTextsIntoLowerCase) {
  const json cased = {
      {"tokenizer_config.json", {{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", false}}}};
  json lowered = cased;
  lowered["sentence_bert_config.json"] = {{"do_lower_case", true}};
  EXPECT_NE(vector_of(cased, "THE Cat"), vector_of(cased, "the cat"));
  EXPECT_EQ(vector_of(lowered, "THE Cat"), vector_of(cased, "the cat"));
}

TEST(SentenceEncoder, NamesWhatItDoesNotHonour) {
  const auto refusal = [](const std::string& file, const json& document) {
    return test::error_of([&] { vector_of({{file, document}}, "the"); });
  };
  const std::string whole = "config_sentence_transformers.json";
  EXPECT_THAT(refusal(whole, {{"model_type", "SparseEncoder"}}), HasSubstr("model_type is"));
  EXPECT_THAT(refusal(whole, {{"default_prompt_name", "p"}, {"prompts", {{"q", "query: "}}}}),
              HasSubstr("default_prompt_name is 'p', which prompts lacks"));
  EXPECT_THAT(refusal(whole, {{"prompts", {{"q", 1}}}}), HasSubstr("prompts has 'q' that is not"));
  EXPECT_THAT(refusal(whole, {{"prompts", {{"", "a"}}}}), HasSubstr("prompt without a name"));
  for (const json& prompts : {json("query: "), json({"query: "}), json(1)})
    EXPECT_THAT(refusal(whole, {{"prompts", prompts}}), HasSubstr("prompts is not an object"));
  EXPECT_THAT(refusal(whole, {{"default_prompt_name", 1}}), HasSubstr("default_prompt_name is"));
  EXPECT_EQ(refusal(whole, {{"default_prompt_name", "q"}, {"prompts", {{"q", nullptr}}}}), "");
  for (const json& cut : {json(0), json(-1), json("8"), json(2.5)})
    EXPECT_THAT(refusal(whole, {{"truncate_dim", cut}}), HasSubstr("truncate_dim is")) << cut;
  EXPECT_THAT(refusal("sentence_bert_config.json", {{"query_length", 8}}),
              HasSubstr("query_length is set"));
  EXPECT_THAT(refusal("sentence_bert_config.json", {{"transformer_task", "fill-mask"}}),
              HasSubstr("transformer_task is"));
}

}  // namespace sentence_encoder_test
}  // namespace attend
