#include <gmock/gmock.h>

#include "attend/inference/model.h"
#include "attend/models/model_folder.h"
#include "attend/models/transformer_config.h"
#include "attend/text/text_tokenizer.h"
#include "tests/import/foreign_folder.h"

namespace attend {
namespace t5_test {

using test::ForeignFolder;
using test::refused;
using testing::HasSubstr;

constexpr const char* name = "T5ForConditionalGeneration";

TransformerConfig settings_of(const ForeignFolder& given) {
  const test::TemporaryFolder folder;
  given.write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  return load_pair_model(folder / "ours").config.of<TransformerConfig>();
}

TEST(T5, RefusesUnsupportedKeysByName) {
  const auto refusal = [](const char* key, const test::json& value) {
    return refused(name, [&](ForeignFolder& folder) { folder.config()[key] = value; });
  };
  for (const auto& [key, value] : std::vector<std::pair<const char*, test::json>>{
           {"feed_forward_proj", "gated-sine"},
           {"dense_act_fn", "relu"},
           {"is_gated_act", false},
           {"is_encoder_decoder", false},
           {"is_decoder", true},
           {"relative_attention_num_buckets", 3},
           {"relative_attention_max_distance", 4},
           {"d_kv", 0},
           {"layer_norm_epsilon", -1},
           {"decoder_start_token_id", 1000},
           {"eos_token_id", 1000},
           {"architectures", {"T5ForTokenClassification"}}})
    EXPECT_THAT(refusal(key, value), HasSubstr(key));
}

TEST(T5, RefusesMissingAndUnknownTensors) {
  EXPECT_THAT(refused(name,
                      [](ForeignFolder& folder) {
                        folder.tensors.erase("decoder.final_layer_norm.weight");
                      }),
              HasSubstr("decoder.final_layer_norm.weight"));
  EXPECT_THAT(refused(name,
                      [](ForeignFolder& folder) {
                        folder.tensors["encoder.block.0.layer.2.weight"] = at::zeros({2});
                      }),
              HasSubstr("encoder.block.0.layer.2.weight"));
}

// Files of version 5 of transformers call every output tied.
TEST(T5, ReadsAnOutputOfItsOwn) {
  ForeignFolder folder(name);
  EXPECT_EQ(settings_of(folder).tied, Tied::all);
  EXPECT_TRUE(settings_of(folder).scale_output);
  folder.tensors["lm_head.weight"] = folder.tensors["shared.weight"].clone();
  EXPECT_EQ(settings_of(folder).tied, Tied::all);
  folder.tensors["lm_head.weight"] = folder.tensors["shared.weight"] + 1;
  EXPECT_EQ(settings_of(folder).tied, Tied::inputs);
  folder.config()["tie_word_embeddings"] = false;
  folder.config().erase("scale_decoder_outputs");
  EXPECT_FALSE(settings_of(folder).scale_output);
  folder.config()["scale_decoder_outputs"] = true;
  EXPECT_TRUE(settings_of(folder).scale_output);
}

// ByT5 (Xue et al. 2022): a byte's id is the byte + 3, and 125 more tokens follow.
TEST(T5, TokensOfByT5AreBytes) {
  ForeignFolder folder(name);
  folder.files.erase("spiece.model");
  folder.files["tokenizer_config.json"] = {{"tokenizer_class", "ByT5Tokenizer"}};
  constexpr int64_t tokens = 384;
  folder.config()["vocab_size"] = tokens;
  folder.tensors["shared.weight"] = at::ones({tokens, folder.tensors["shared.weight"].size(1)});
  const test::TemporaryFolder place;
  folder.write(place / "theirs");
  import_model(place / "theirs", place / "ours");
  const TextTokenizer tokenizer = TextTokenizer::load(place / "ours" + "/tokenizer.json");
  EXPECT_EQ(tokenizer.size(), tokens);
  std::vector<int32_t> ids;
  for (const std::string& token : tokenizer.split("a\xC3\xA9 <extra_id_0><extra_id_124>"))
    ids.push_back(tokenizer.id(token).value());
  EXPECT_THAT(ids, testing::ElementsAre('a' + 3, 0xC3 + 3, 0xA9 + 3, ' ' + 3, 259, 383, 1));
}

}  // namespace t5_test
}  // namespace attend
