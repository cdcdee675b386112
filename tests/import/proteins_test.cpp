#include <gmock/gmock.h>

#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "attend/nn/rotation.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace proteins_test {

using test::ForeignFolder;
using test::refused;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* frequencies_of_first =
    "esm.encoder.layer.0.attention.self.rotary_embeddings.inv_freq";

std::string scaling_of(const ForeignFolder& foreign) {
  const test::TemporaryFolder folder;
  foreign.write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  const std::string config = test::contents(folder / "ours/config.toml");
  const std::string key = "rotary_scaling = \"";
  const size_t begin = config.find(key) + key.size();
  return config.substr(begin, config.find('"', begin) - begin);
}

// A list of tokens splits a text at each of them. Other characters are unknown.
TEST(Proteins, AreSplitIntoResidues) {
  const test::TemporaryFolder folder;
  ForeignFolder("EsmModel").write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  const Model model(folder / "ours");
  const auto tokens = [&](const std::string& text) { return model.embed({text})[0].tokens; };
  EXPECT_THAT(tokens("MK<mask>A"), ElementsAre("<cls>", "M", "K", "<mask>", "A", "<eos>"));
  EXPECT_THAT(tokens(" M jJ k<null_1>X "),
              ElementsAre("<cls>", "M", "[<unk>]", "[<unk>]", "<null_1>", "X", "<eos>"));
  EXPECT_THAT(tokens("<nul-."), ElementsAre("<cls>", "[<unk>]", "-", ".", "<eos>"));
  EXPECT_EQ(tokens(std::string(200, 'j')).size(), 3U);
}

TEST(Proteins, AreReadWithTheFrequenciesOfTheFile) {
  ForeignFolder foreign("EsmForMaskedLM");
  EXPECT_EQ(scaling_of(foreign), "none");
  const at::Tensor whole = rotary_frequencies({}, 4).to(at::kFloat);
  foreign.tensors[frequencies_of_first] = whole;
  EXPECT_EQ(scaling_of(foreign), "none");
  // float16 does not contain 0.01.
  foreign.tensors[frequencies_of_first] = whole.to(at::kHalf).to(at::kFloat);
  EXPECT_EQ(scaling_of(foreign), "float16");
  const auto with = [](const at::Tensor& first, const at::Tensor& second) {
    return refused("EsmForMaskedLM", [&](ForeignFolder& changed) {
      changed.tensors[frequencies_of_first] = first;
      if (second.defined()) changed.tensors["esm.rotary_embeddings.inv_freq"] = second;
    });
  };
  EXPECT_THAT(with(whole * 2, {}), HasSubstr("holds other frequencies than powers of rope_theta"));
  EXPECT_THAT(with(whole.slice(0, 1), {}), HasSubstr("holds other frequencies"));
  EXPECT_THAT(with(whole, whole.to(at::kHalf)), HasSubstr("the same in all layers"));
}

TEST(Proteins, NameWhatIsNotRead) {
  const auto with = [](const char* key, const test::json& value) {
    return refused("EsmForMaskedLM",
                   [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  EXPECT_THAT(with("position_embedding_type", "absolute"), HasSubstr("only ESM-2's rotary"));
  EXPECT_THAT(with("is_folding_model", true), HasSubstr("ESMFold is not read"));
  EXPECT_THAT(with("hidden_act", "relu"), HasSubstr("hidden_act is"));
  EXPECT_THAT(with("num_attention_heads", 8), HasSubstr("rotation takes pairs"));
  EXPECT_THAT(
      refused("EsmForMaskedLM", [](ForeignFolder& foreign) { foreign.files.erase("vocab.txt"); }),
      HasSubstr("neither tokenizer.json nor older files"));
  EXPECT_THAT(refused("EsmForMaskedLM",
                      [](ForeignFolder& foreign) { foreign.files["vocab.txt"] = "L\nA\nL\n"; }),
              HasSubstr("vocab.txt:3: 'L' is there twice"));
  EXPECT_THAT(refused("EsmForMaskedLM",
                      [](ForeignFolder& foreign) {
                        foreign.tensors["esm.contact_head.regression.weight"] = at::zeros({1, 5});
                      }),
              HasSubstr("has shape [1, 5]; config.json describes [1, 4]"));
}

}  // namespace proteins_test
}  // namespace attend
