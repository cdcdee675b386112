// Tests of the import and the export of DeBERTa-v2 beyond the golden cases.
#include <gmock/gmock.h>

#include "attend/import/export_model.h"
#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace deberta_test {

using test::ForeignFolder;
using test::json;
using testing::HasSubstr;

constexpr const char* masked = "DebertaV2ForMaskedLM";
constexpr const char* text = "Paris is the [MASK] of France";

std::vector<double> guessed(const Model& model) {
  std::vector<double> numbers;
  for (const auto& guesses : model.fill(text, "[MASK]", 3))
    for (const TokenProbability& guess : guesses) numbers.push_back(guess.probability);
  return numbers;
}

// The head as files name it if the key legacy is true.
void rename_head(ForeignFolder& foreign) {
  const std::string newer = "lm_predictions.lm_head.";
  for (const char* name : {"dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias"})
    foreign.tensors[std::string("cls.predictions.transform.") + name] =
        foreign.tensors.extract(newer + name).mapped();
  foreign.tensors["cls.predictions.bias"] = foreign.tensors.extract(newer + "bias").mapped();
}

TEST(Deberta, ReadsBothHeadsOfMaskedWords) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign(masked);
  foreign.config().erase("legacy");
  foreign.write(folder / "released");
  const ImportedModel released = import_model(folder / "released", folder / "one");
  EXPECT_THAT(released.notes, testing::Contains(HasSubstr("lm_predictions.lm_head.dense.weight")));
  rename_head(foreign);
  foreign.write(folder / "older");
  import_model(folder / "older", folder / "two");
  EXPECT_EQ(guessed(Model(folder / "one")), guessed(Model(folder / "two")));
}

// Neither the type nor the class is in some released files.
TEST(Deberta, IsFoundByItsTensors) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign(masked);
  for (const char* key : {"architectures", "model_type"}) foreign.config().erase(key);
  foreign.tensors["mask_predictions.dense.weight"] = at::zeros({8, 8});
  foreign.write(folder / "theirs");
  EXPECT_EQ(import_model(folder / "theirs", folder / "ours").architecture, masked);
}

TEST(Deberta, IsExportedAsItWasRead) {
  for (const char* name : {"DebertaV2Model", masked, "DebertaV2ForSequenceClassification"}) {
    SCOPED_TRACE(name);
    const test::TemporaryFolder folder;
    const ForeignFolder foreign(name);
    foreign.write(folder / "theirs");
    import_model(folder / "theirs", folder / "ours");
    EXPECT_EQ(export_model(folder / "ours", folder / "again").architecture, name);
    import_model(folder / "again", folder / "twice");
    for (const char* file : {"/weights.safetensors", "/source.vocab", "/config.toml"})
      EXPECT_EQ(test::contents(folder / "ours" + file), test::contents(folder / "twice" + file));
  }
}

// Answers do not depend on the other lines of a batch, although the convolution reads neighbours.
TEST(Deberta, AnswersEachTextByItself) {
  const test::TemporaryFolder folder;
  ForeignFolder("DebertaV2Model").write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  const Model model(folder / "ours");
  const std::vector<std::string> texts = {"the cat", "a dog sits on the old house", "Paris", "of"};
  const std::vector<Embedding> together = model.embed(texts);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(model.embed({texts[i]}).at(0).whole, together[i].whole) << texts[i];
}

TEST(Deberta, NamesWhatIsNotRead) {
  const auto with = [](const char* key, const json& value) {
    return test::refused(masked, [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  EXPECT_THAT(with("type_vocab_size", 2), HasSubstr("types of tokens are not read"));
  EXPECT_THAT(with("conv_groups", 2), HasSubstr("conv_groups"));
  EXPECT_THAT(with("conv_kernel_size", 4), HasSubstr("odd widths are read"));
  EXPECT_THAT(with("pos_att_type", "c2p"), HasSubstr("names one of c2p and p2c"));
  EXPECT_THAT(with("pos_att_type", json::array()), HasSubstr("lacks c2p and p2c"));
  EXPECT_THAT(with("embedding_size", 4), HasSubstr("embedding_size"));
  EXPECT_THAT(with("position_buckets", 1), HasSubstr("take more buckets than 1"));
  EXPECT_THAT(with("max_relative_positions", 5), HasSubstr("distances above 5"));
  EXPECT_THAT(with("hidden_act", "silly"), HasSubstr("hidden_act"));
  EXPECT_THAT(
      test::refused(masked,
                    [](ForeignFolder& foreign) {
                      foreign.tensors["deberta.encoder.rel_embeddings.weight"] = at::zeros({8, 8});
                    }),
      HasSubstr("has shape [8, 8]; config.json describes [16, 8]"));
}

}  // namespace deberta_test
}  // namespace attend
