#include <gmock/gmock.h>

#include <set>

#include "attend/files/safetensors.h"
#include "attend/import/export_model.h"
#include "attend/import/import_model.h"
#include "attend/models/classifier.h"
#include "attend/models/embedder.h"
#include "attend/models/masked_language_model.h"
#include "attend/models/model_folder.h"
#include "attend/models/tagger.h"
#include "attend/text/text_tokenizer.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace encoders_test {

using test::ForeignFolder;
using test::json;
using test::refused;
using testing::HasSubstr;

// Imports a foreign folder and returns the model folder.
std::string imported(const test::TemporaryFolder& folder, const ForeignFolder& foreign) {
  foreign.write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  return folder / "ours";
}

std::string with_key(const char* name, const char* key, const json& value) {
  return refused(name, [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
}

// Checks that an export has the tensors that were imported, except the names that are left aside,
// and that it is read as the same model.
void expect_exported_again(const ForeignFolder& foreign,
                           const std::set<std::string>& left_aside = {}) {
  const test::TemporaryFolder folder;
  const std::string name = foreign.files["config.json"]["architectures"][0];
  const std::string ours = imported(folder, foreign);
  EXPECT_EQ(export_model(ours, folder / "again").architecture, name);
  const TensorFile again = read_safetensors(folder / "again/model.safetensors");
  std::set<std::string> found, expected;
  for (const auto& [key, tensor] : again.tensors) found.insert(key);
  for (const auto& [key, tensor] : foreign.tensors)
    if (!left_aside.contains(key)) expected.insert(key);
  EXPECT_EQ(found, expected);
  import_model(folder / "again", folder / "again-ours");
  EXPECT_EQ(test::contents(folder / "again-ours/weights.safetensors"),
            test::contents(folder / "ours/weights.safetensors"));
}

TEST(Electra, HasSmallerTokenVectors) {
  const test::TemporaryFolder folder;
  const PairModel model = load_pair_model(imported(folder, ForeignFolder("ElectraForMaskedLM")));
  ModelConfig config = model.config;
  EXPECT_EQ(config.of<MaskedLanguageModelConfig>().depth, 8);
  EXPECT_EQ(config.of<MaskedLanguageModelConfig>().embedding_depth, 12);
}

TEST(Electra, IsExportedAgain) {
  expect_exported_again(ForeignFolder("ElectraForMaskedLM"), {"generator_lm_head.weight"});
  expect_exported_again(ForeignFolder("ElectraForSequenceClassification"));
  expect_exported_again(ForeignFolder("ElectraForPreTraining"));
}

std::vector<std::string> labels_of(const ForeignFolder& foreign) {
  const test::TemporaryFolder folder;
  const Vocabulary labels = load_pair_model(imported(folder, foreign)).target_vocabulary;
  std::vector<std::string> names;
  for (int64_t id = Vocabulary::unknown + 1; id < labels.size(); ++id)
    names.push_back(labels.token(id));
  return names;
}

TEST(Electra, NamesLabelsOfReplacedTokensAndKeepsOthers) {
  ForeignFolder foreign("ElectraForPreTraining");
  EXPECT_THAT(labels_of(foreign), testing::ElementsAre("original", "replaced"));
  foreign.config()["id2label"] = {{"0", "right"}, {"1", "wrong"}};
  EXPECT_THAT(labels_of(foreign), testing::ElementsAre("right", "wrong"));
  EXPECT_THAT(with_key("ElectraForPreTraining", "id2label", {{"0", "a"}, {"1", "b"}, {"2", "c"}}),
              HasSubstr("id2label has 3 labels; ElectraForPreTraining has 2"));
}

TEST(Electra, NamesWhatIsNotRead) {
  EXPECT_THAT(with_key("ElectraForMaskedLM", "hidden_act", "relu"),
              HasSubstr("hidden_act is not gelu"));
  EXPECT_THAT(with_key("ElectraForMaskedLM", "embedding_size", 0),
              HasSubstr("embedding_size is 0"));
  EXPECT_THAT(with_key("ElectraForMaskedLM", "embedding_size", 8),
              HasSubstr("config.json describes [156, 8]"));
}

TEST(Albert, SharesLayers) {
  const test::TemporaryFolder folder;
  // Two passes over groups of two layers, each pass with a group of its own.
  ForeignFolder foreign("AlbertModel");
  const auto owners = [&](int64_t passes) {
    const test::TemporaryFolder place;
    foreign.config()["num_hidden_layers"] = passes;
    ModelConfig config = load_pair_model(imported(place, foreign)).config;
    return config.of<EmbedderConfig>().shared_layers;
  };
  EXPECT_EQ(owners(2), "1, 2, 3, 4");
  // As transformers divides: floor(pass / (passes / groups)).
  EXPECT_EQ(owners(3), "1, 2, 1, 2, 5, 6");
  EXPECT_EQ(owners(4), "1, 2, 1, 2, 5, 6, 5, 6");
  EXPECT_EQ(owners(5), "1, 2, 1, 2, 1, 2, 7, 8, 7, 8");
}

TEST(Albert, IsExportedAgainWithEachLayerOnce) {
  expect_exported_again(ForeignFolder("AlbertForMaskedLM"),
                        {"predictions.decoder.bias", "predictions.decoder.weight"});
  ForeignFolder groups("AlbertModel");
  groups.config()["num_hidden_layers"] = 3;
  expect_exported_again(groups, {"pooler.bias", "pooler.weight"});
}

TEST(Albert, NamesWhatIsNotRead) {
  EXPECT_THAT(with_key("AlbertModel", "num_hidden_groups", 3), HasSubstr("num_hidden_groups is 3"));
  EXPECT_THAT(with_key("AlbertModel", "inner_group_num", 129), HasSubstr("inner_group_num is 129"));
  EXPECT_THAT(with_key("AlbertModel", "inner_group_num", 0), HasSubstr("inner_group_num is 0"));
  EXPECT_THAT(refused("AlbertForMaskedLM",
                      [](ForeignFolder& foreign) {
                        foreign.tensors.erase(
                            "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.bias");
                      }),
              HasSubstr("albert_layers.0.ffn.bias' is missing"));
}

TEST(MPNet, IsExportedAgain) {
  expect_exported_again(ForeignFolder("MPNetModel"), {"pooler.dense.bias", "pooler.dense.weight"});
  expect_exported_again(ForeignFolder("MPNetForMaskedLM"),
                        {"lm_head.decoder.bias", "lm_head.decoder.weight"});
}

TEST(MPNet, NamesWhatIsNotRead) {
  EXPECT_THAT(with_key("MPNetModel", "relative_attention_num_buckets", 16),
              HasSubstr("relative_attention_num_buckets is '16'"));
  EXPECT_THAT(with_key("MPNetModel", "pad_token_id", 0), HasSubstr("pad_token_id is not 1"));
}

TEST(Roberta, PadsWithTheTokenThatPositionsLeaveOut) {
  EXPECT_THAT(with_key("RobertaForMaskedLM", "pad_token_id", 3),
              HasSubstr("positions leave out token 3"));
  EXPECT_THAT(refused("MPNetModel",
                      [](ForeignFolder& foreign) {
                        foreign.files["tokenizer_config.json"]["pad_token"] = "<s>";
                      }),
              HasSubstr("positions leave out token 1"));
}

TEST(T5Encoder, IsExportedAgain) {
  expect_exported_again(ForeignFolder("T5EncoderModel"));
  ForeignFolder deeper("T5EncoderModel");
  deeper.config()["feed_forward_proj"] = "gated-silu";
  deeper.config()["dense_act_fn"] = "silu";
  deeper.config()["layer_norm_epsilon"] = 1e-3;
  expect_exported_again(deeper);
}

// Sentence encoders may be saved with the decoder, which they do not use.
TEST(T5Encoder, LeavesOutTheDecoder) {
  ForeignFolder whole("T5ForConditionalGeneration");
  whole.config()["architectures"] = {"T5EncoderModel"};
  const test::TemporaryFolder folder;
  whole.write(folder / "theirs");
  EXPECT_EQ(import_model(folder / "theirs", folder / "ours").type, "embedder");
  whole.config().erase("architectures");
  whole.write(folder / "theirs");
  EXPECT_EQ(import_model(folder / "theirs", folder / "decoding").type, "transformer")
      << "by the tensors";
}

// vocab.txt with RoBERTa's marks around one text and between two.
TEST(MPNet, ReadsOlderFiles) {
  const test::TemporaryFolder folder, older;
  ForeignFolder foreign("MPNetForMaskedLM");
  const TextTokenizer newer = TextTokenizer::load(imported(folder, foreign) + "/tokenizer.json");
  std::vector<std::string> tokens(foreign.files["tokenizer.json"]["model"]["vocab"].size());
  for (const auto& [token, id] : foreign.files["tokenizer.json"]["model"]["vocab"].items())
    tokens[id.get<size_t>()] = token;
  std::string lines;
  for (const std::string& token : tokens) lines += token + "\n";
  foreign.files.erase("tokenizer.json");
  foreign.files["tokenizer_config.json"] = json::object();
  foreign.files["vocab.txt"] = lines;
  const TextTokenizer read = TextTokenizer::load(imported(older, foreign) + "/tokenizer.json");
  for (const char* text : {"Paris, the <mask> CAT", "caf\xC3\xA9 <s>", ""})
    EXPECT_EQ(read.split(text), newer.split(text));
}

}  // namespace encoders_test
}  // namespace attend
