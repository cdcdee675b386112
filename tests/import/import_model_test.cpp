#include "attend/import/import_model.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "attend/base/files.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace import_model_test {

using test::ForeignFolder;
using test::json;
using test::refused;
using testing::HasSubstr;

TEST(ImportModel, NamesASettingThatItDoesNotHonour) {
  const auto with = [](const char* key, const json& value) {
    return refused("BertModel", [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  EXPECT_THAT(with("position_embedding_type", "relative_key"),
              HasSubstr("position_embedding_type is '\"relative_key\"', which is not supported"));
  EXPECT_THAT(with("hidden_act", "mish"),
              HasSubstr("hidden_act is 'mish', which is not supported"));
  EXPECT_THAT(with("is_decoder", true), HasSubstr("is_decoder is"));
  EXPECT_THAT(with("add_cross_attention", true), HasSubstr("add_cross_attention is"));
  EXPECT_THAT(with("layer_norm_eps", -1), HasSubstr("layer_norm_eps is -1"));
  EXPECT_THAT(with("num_hidden_layers", 2000000000), HasSubstr("1 to 256 are read"));
  EXPECT_THAT(with("num_attention_heads", 3), HasSubstr("does not divide hidden_size, 8"));
  EXPECT_THAT(with("hidden_size", "8"), HasSubstr("hidden_size is not a whole number"));
  EXPECT_THAT(with("model_type", "gpt_neox"), HasSubstr("is 'gpt_neox', which is not read; bert"));
  EXPECT_THAT(with("architectures", json::array({"BertForMultipleChoice"})),
              HasSubstr("which is not read; BertModel"));
  EXPECT_THAT(with("vocab_size", 20), HasSubstr("tokens, and vocab_size of config.json is 20"));
}

TEST(ImportModel, NamesATensorThatIsNotAsItShouldBe) {
  const auto with = [](const std::function<void(std::map<std::string, at::Tensor>&)>& change) {
    return refused("BertModel", [&](ForeignFolder& foreign) { change(foreign.tensors); });
  };
  const std::string name = "encoder.layer.1.attention.self.key.bias";
  EXPECT_THAT(with([&](auto& all) { all.erase(name); }),
              HasSubstr("tensor '" + name + "' is missing"));
  EXPECT_THAT(with([&](auto& all) { all[name] = at::zeros({9}); }),
              HasSubstr("tensor '" + name + "' has shape [9]; config.json describes [8]"));
  EXPECT_THAT(with([&](auto& all) { all[name] = at::zeros({8}, at::kChar); }),
              HasSubstr("quantised weights are not read"));
  EXPECT_THAT(with([&](auto& all) { all["adapter.weight"] = at::zeros({8}); }),
              HasSubstr("tensor 'adapter.weight' does not belong to a part of BertModel"));
  EXPECT_THAT(with([&](auto& all) {
                all["embeddings.token_type_embeddings.weight"] = at::zeros({0, 8});
              }),
              HasSubstr("has shape [0, 8]"));
}

TEST(ImportModel, NamesWhatGpt2DoesOtherwise) {
  const auto with = [](const char* key, const json& value) {
    return refused("GPT2LMHeadModel",
                   [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    EXPECT_THAT(with(key, true),
                HasSubstr(std::string(key) + " is 'true', which is not supported"));
  EXPECT_THAT(with("scale_attn_weights", false), HasSubstr("scale_attn_weights is"));
  EXPECT_THAT(with("activation_function", "mish"), HasSubstr("activation_function is 'mish'"));
  EXPECT_THAT(with("n_inner", 9), HasSubstr("h.0.mlp.c_fc.weight' has shape"));
  EXPECT_THAT(with("n_head", 3), HasSubstr("does not divide n_embd, 8"));
  EXPECT_THAT(with("n_positions", 2), HasSubstr("n_positions is 2"));
  EXPECT_THAT(with("eos_token_id", 100000), HasSubstr("eos_token_id is 100000"));
  EXPECT_THAT(with("architectures", json::array({"GPT2Model"})),
              HasSubstr("is 'GPT2Model' (vectors of a decoder's tokens), which is not read; "
                        "GPT2LMHeadModel are"));
}

TEST(ImportModel, NamesWhatModernBertDoesOtherwise) {
  const auto with = [](const char* key, const json& value, const char* name = "ModernBertModel") {
    return refused(name, [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  EXPECT_THAT(with("layer_types", {"full_attention", "chunked_attention"}),
              HasSubstr("is 'chunked_attention', which is not read"));
  EXPECT_THAT(with("layer_types", {"full_attention"}),
              HasSubstr("layer_types has 1 entries, and num_hidden_layers is 2"));
  EXPECT_THAT(with("rope_parameters", {{"full_attention", {{"rope_type", "yarn"}}}}),
              HasSubstr("rope_type is '\"yarn\"', which is not supported"));
  EXPECT_THAT(with("rope_parameters", {{"full_attention", {{"factor", 2}}}}),
              HasSubstr("has the key 'factor'"));
  EXPECT_THAT(with("rope_parameters", {{"rope_theta", 1000}}), HasSubstr("the key 'rope_theta'"));
  EXPECT_THAT(with("rope_parameters", {{"sliding_attention", {{"rope_theta", 1}}}}),
              HasSubstr("rope_theta is 1;"));
  EXPECT_THAT(with("local_attention", 0), HasSubstr("local_attention is 0"));
  EXPECT_THAT(with("num_attention_heads", 8), HasSubstr("num_attention_heads is 8"));
  EXPECT_THAT(with("hidden_activation", "mish"), HasSubstr("hidden_activation is 'mish'"));
  EXPECT_THAT(with("mlp_bias", true), HasSubstr("Wi.bias' is missing"));
  EXPECT_THAT(with("classifier_activation", "relu", "ModernBertForMaskedLM"),
              HasSubstr("classifier_activation is not hidden_activation"));
  EXPECT_THAT(with("classifier_pooling", "max", "ModernBertForSequenceClassification"),
              HasSubstr("classifier_pooling is 'max', which is not read"));
}

// Names and defaults of transformers 4.
TEST(ImportModel, ReadsOlderFilesOfModernBert) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("ModernBertModel");
  foreign.write(folder / "newer");
  json& config = foreign.config();
  for (const char* key : {"layer_types", "rope_parameters", "norm_eps", "hidden_activation"})
    config.erase(key);
  config["global_attn_every_n_layers"] = 3;
  config["global_rope_theta"] = 160000.0;
  config["position_embedding_type"] = "absolute";
  foreign.write(folder / "older");
  import_model(folder / "newer", folder / "one");
  import_model(folder / "older", folder / "two");
  for (const char* name : {"/config.toml", "/weights.safetensors"})
    EXPECT_EQ(test::contents(folder / "one" + name), test::contents(folder / "two" + name));
}

TEST(ImportModel, NamesWhatATranslatorDoesOtherwise) {
  const auto with = [](const char* key, const json& value) {
    return refused("MarianMTModel", [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  for (const char* key :
       {"normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits"})
    EXPECT_THAT(with(key, true),
                HasSubstr(std::string(key) + " is 'true', which is not supported"));
  for (const char* key :
       {"static_position_embeddings", "share_encoder_decoder_embeddings", "is_encoder_decoder"})
    EXPECT_THAT(with(key, false), HasSubstr(std::string(key) + " is 'false'"));
  EXPECT_THAT(with("decoder_ffn_dim", 9),
              HasSubstr("decoder_ffn_dim is not 12, as encoder_ffn_dim is"));
  EXPECT_THAT(with("decoder_attention_heads", 1), HasSubstr("as encoder_attention_heads is"));
  EXPECT_THAT(with("d_model", 9), HasSubstr("which does not divide d_model, 9"));
  EXPECT_THAT(with("decoder_vocab_size", 9), HasSubstr("two vocabularies are not read"));
  EXPECT_THAT(with("decoder_start_token_id", 1000), HasSubstr("decoder_start_token_id is 1000"));
  EXPECT_THAT(with("pad_token_id", 0), HasSubstr("eos_token_id is the padding token, 0"));
  EXPECT_THAT(with("decoder_layers", 3), HasSubstr("'decoder.layers.2.self_attn.q_proj.weight'"));
  EXPECT_THAT(with("architectures", json::array({"MarianModel"})),
              HasSubstr("is 'MarianModel' (vectors without an output), which is not read"));
}

TEST(ImportModel, NamesWhatFilesOfATranslatorLack) {
  const auto with = [](const char* name, const std::function<void(json&)>& change) {
    return refused("MarianMTModel", [&](ForeignFolder& foreign) { change(foreign.files[name]); });
  };
  for (const char* name : {"source.spm", "target.spm", "vocab.json"})
    EXPECT_THAT(refused("MarianMTModel", [&](ForeignFolder& all) { all.files.erase(name); }),
                HasSubstr(std::string(name) + ": is missing"));
  EXPECT_THAT(with("target.spm", [](json& file) { file = "CgX/////"; }), HasSubstr("target.spm: "));
  EXPECT_THAT(with("vocab.json", [](json& file) { file["<pad>"] = 0; }), HasSubstr("vocab.json: "));
  EXPECT_THAT(with("vocab.json", [](json& file) { file["more"] = file.size(); }),
              HasSubstr("and vocab_size of config.json is"));
  EXPECT_THAT(with("vocab.json",
                   [](json& file) {
                     file["<padding>"] = file["<pad>"];
                     file.erase("<pad>");
                   }),
              HasSubstr("vocab.json: has no special token <pad>"));
  const auto config = [&](const char* key, const json& value) {
    return with("tokenizer_config.json", [&](json& file) { file[key] = value; });
  };
  EXPECT_THAT(config("eos_token", "<end>"), HasSubstr("eos_token is '<end>', which is not"));
  EXPECT_THAT(config("separate_vocabs", true), HasSubstr("separate_vocabs is true"));
  EXPECT_THAT(config("sp_model_kwargs", {{"alpha", 0.1}}), HasSubstr("sp_model_kwargs is not"));
}

// Padding is part of the distribution but never answered.
TEST(ImportModel, ATranslatorNeverAnswersPadding) {
  const auto answer = [](int64_t token) {
    const test::TemporaryFolder folder;
    ForeignFolder foreign("MarianMTModel");
    foreign.tensors["final_logits_bias"][0][token] = 50;
    foreign.write(folder / "theirs");
    import_model(folder / "theirs", folder / "ours");
    EXPECT_EQ(names_in(folder / "ours"),
              (std::set<std::string>{"config.toml", "source.spm", "source.vocab", "target.spm",
                                     "target.vocab", "weights.safetensors"}));
    return Model(folder / "ours").answer({"the cat"}, {.maximum_length = 3}).at(0).best();
  };
  ForeignFolder foreign("MarianMTModel");
  const Candidate padded = answer(foreign.config()["pad_token_id"]);
  ASSERT_EQ(padded.tokens.size(), 3U);
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_NE(padded.tokens[t], "[<pad>]");
    EXPECT_LT(padded.log_probabilities[t], -40);
  }
  const Candidate ended = answer(foreign.config()["eos_token_id"]);
  EXPECT_TRUE(ended.tokens.empty());
  ASSERT_EQ(ended.log_probabilities.size(), 1U);
  EXPECT_GT(ended.log_probabilities[0], -1e-6);
}

TEST(ImportModel, ATranslatorMayHaveNoBias) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("MarianMTModel");
  foreign.tensors["final_logits_bias"].zero_();
  foreign.write(folder / "zeros");
  foreign.tensors.erase("final_logits_bias");
  foreign.write(folder / "none");
  import_model(folder / "zeros", folder / "one");
  import_model(folder / "none", folder / "two");
  EXPECT_EQ(test::contents(folder / "one/weights.safetensors"),
            test::contents(folder / "two/weights.safetensors"));
}

TEST(ImportModel, RefusesAnOutputThatIsNotTheEmbedding) {
  const std::string message = refused("BertForMaskedLM", [](ForeignFolder& foreign) {
    foreign.tensors["cls.predictions.decoder.weight"] =
        foreign.tensors["bert.embeddings.word_embeddings.weight"] * 2;
  });
  EXPECT_THAT(message, HasSubstr("differs from the one that it repeats"));
}

TEST(ImportModel, RefusesPickledWeightsWithTheWayToConvertThem) {
  const std::string message = refused("BertModel", [](ForeignFolder& foreign) {
    foreign.tensors.clear();
    foreign.files["pytorch_model.bin"] = "PK";
  });
  EXPECT_THAT(message, HasSubstr("pytorch_model.bin: holds pickled weights"));
  EXPECT_THAT(message, HasSubstr("save_pretrained"));
}

TEST(ImportModel, NamesWhatALabelOrAPoolingLacks) {
  EXPECT_THAT(refused("DistilBertForSequenceClassification",
                      [](ForeignFolder& foreign) {
                        foreign.config()["id2label"] = {{"0", "a"}, {"2", "b"}};
                      }),
              HasSubstr("id2label has 2 labels and none for 1; number them from 0"));
  const auto pooled = [](const json& pooling, const char* last) {
    return refused("BertModel", [&](ForeignFolder& foreign) {
      foreign.files["modules.json"] = {{{"path", ""}, {"type", "models.Transformer"}},
                                       {{"path", "1_Pooling"}, {"type", "models.Pooling"}},
                                       {{"path", "2"}, {"type", last}}};
      foreign.files["1_Pooling/config.json"] = pooling;
    });
  };
  EXPECT_THAT(pooled({{"pooling_mode_median_tokens", true}}, "models.Normalize"),
              HasSubstr("pooling_mode_median_tokens is a pooling that is not read"));
  EXPECT_THAT(pooled({{"pooling_mode", "median"}}, "models.Normalize"),
              HasSubstr("is the pooling 'median', which is not read; cls, max, mean"));
  EXPECT_THAT(pooled({{"pooling_mode", json::array()}}, "models.Normalize"),
              HasSubstr("names no pooling"));
  EXPECT_THAT(pooled({{"pooling_mode_cls_token", true}}, "models.LSTM"),
              HasSubstr("'models.LSTM'"));
  EXPECT_THAT(pooled({{"pooling_mode_cls_token", true}}, "models.Pooling"),
              HasSubstr("follows a module that it should precede"));
}

TEST(ImportModel, NamesWhatIsDoneToImagesAndNotHonoured) {
  const auto with = [](const char* key, const json& value) {
    return refused("DeiTForImageClassification", [&](ForeignFolder& foreign) {
      foreign.files["preprocessor_config.json"][key] = value;
    });
  };
  EXPECT_THAT(with("resample", 1), HasSubstr("preprocessor_config.json: resample is 1"));
  EXPECT_THAT(with("size", {{"shortest_edge", 8}}),
              HasSubstr("only a height and a width are supported"));
  EXPECT_THAT(with("size", 5), HasSubstr("crop_size is larger than size"));
  EXPECT_THAT(with("size", 100000), HasSubstr("size is 100000; 1 to 4096 are read"));
  EXPECT_THAT(with("crop_size", 7), HasSubstr("makes images of 7 by 7 pixels"));
  EXPECT_THAT(with("do_center_crop", false), HasSubstr("makes images of 7 by 8 pixels"));
  EXPECT_THAT(with("do_resize", false), HasSubstr("do_resize is false"));
  EXPECT_THAT(with("do_pad", true), HasSubstr("do_pad is 'true', which is not supported"));
  EXPECT_THAT(with("image_mean", json::array({0, 0})), HasSubstr("image_mean has 2 numbers"));
  EXPECT_THAT(with("image_std", json::array({1, 0, 1})), HasSubstr("is 0; 1e-06 to 1e6 is read"));
  EXPECT_THAT(with("image_std", "1"), HasSubstr("image_std is not a number"));
  EXPECT_THAT(with("image_processor_type", "BitImageProcessor"),
              HasSubstr("'BitImageProcessor', which is not read; ViTImageProcessor"));
  EXPECT_THAT(refused("ViTForImageClassification",
                      [](ForeignFolder& all) { all.files.erase("preprocessor_config.json"); }),
              HasSubstr("preprocessor_config.json: is missing"));
}

TEST(ImportModel, NamesWhatIsNotHonouredOfAVisionTransformer) {
  const auto with = [](const char* key, const json& value) {
    return refused("DeiTForImageClassification",
                   [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  EXPECT_THAT(with("patch_size", 4),
              HasSubstr("patch_size is 4, which does not divide image_size"));
  EXPECT_THAT(with("num_channels", 2), HasSubstr("num_channels is 2; 1 and 3 are read"));
  EXPECT_THAT(with("qkv_bias", false), HasSubstr("does not belong to a part"));
  EXPECT_THAT(with("architectures", json::array({"DeiTForImageClassificationWithTeacher"})),
              HasSubstr("'DeiTForImageClassificationWithTeacher' (the mean of two heads), which"));
  EXPECT_THAT(with("image_size", 8), HasSubstr("image_size of config.json is 8 by 8"));
}

// Names and defaults of older files.
TEST(ImportModel, ReadsOlderImageProcessors) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("DeiTForImageClassification");
  foreign.files["preprocessor_config.json"]["size"] = 8;
  foreign.write(folder / "newer");
  foreign.files["preprocessor_config.json"] = {
      {"feature_extractor_type", "DeiTFeatureExtractor"}, {"size", 8}, {"crop_size", 6}};
  foreign.write(folder / "older");
  import_model(folder / "newer", folder / "one");
  import_model(folder / "older", folder / "two");
  for (const char* name : {"/config.toml", "/weights.safetensors"})
    EXPECT_EQ(test::contents(folder / "one" + name), test::contents(folder / "two" + name));
}

TEST(ImportModel, ReadsShardsAsTheWhole) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("BertModel");
  foreign.write(folder / "whole");
  json map;
  std::map<std::string, at::Tensor> shards[2];
  for (const auto& [name, tensor] : foreign.tensors) {
    const size_t shard = map.size() % 2;
    shards[shard][name] = tensor;
    map[name] = "part" + std::to_string(shard) + ".safetensors";
  }
  foreign.tensors.clear();
  const auto write = [&](const std::string& name, const json& weight_map) {
    foreign.files["model.safetensors.index.json"] = {{"weight_map", weight_map}};
    foreign.write(folder / name);
    for (const size_t i : {0, 1})
      write_safetensors(folder / (name + "/part" + std::to_string(i) + ".safetensors"),
                        {shards[i], {}});
  };
  write("shards", map);
  import_model(folder / "whole", folder / "one");
  import_model(folder / "shards", folder / "two");
  EXPECT_EQ(test::contents(folder / "one/weights.safetensors"),
            test::contents(folder / "two/weights.safetensors"));
  const auto error = [&](const std::string& name, const json& changed) {
    write(name, changed);
    return test::error_of([&] { import_model(folder / name, folder / (name + "-out")); });
  };
  json outside = map;
  outside.begin().value() = "../whole/model.safetensors";
  EXPECT_THAT(error("outside", outside), HasSubstr("is not a safetensors file next to the index"));
  json other = map;
  other.begin().value() = "part1.safetensors";
  EXPECT_THAT(error("other", other), HasSubstr("which the index does not list"));
  json more = map;
  more["pooler.more"] = "part0.safetensors";
  EXPECT_THAT(error("more", more), HasSubstr("which lacks that tensor"));
}

TEST(ImportModel, ContinuesWhereItWasKilledAndRefusesOtherFolders) {
  const test::TemporaryFolder folder;
  ForeignFolder("BertModel").write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  EXPECT_THAT(test::error_of([&] { import_model(folder / "theirs", folder / "ours"); }),
              HasSubstr("exists already"));
  std::filesystem::remove(folder / "ours/config.toml");
  import_model(folder / "theirs", folder / "ours");
  EXPECT_EQ(names_in(folder / "ours"),
            (std::set<std::string>{"config.toml", "source.vocab", "target.vocab", "tokenizer.json",
                                   "weights.safetensors"}));
}

TEST(ImportModel, AnEmbedderAnswersNothing) {
  const test::TemporaryFolder folder;
  ForeignFolder("BertModel").write(folder / "theirs");
  import_model(folder / "theirs", folder / "ours");
  const Model model(folder / "ours");
  EXPECT_THAT(test::error_of([&] { model.answer({"the cat"}); }), HasSubstr("attend embed"));
}

}  // namespace import_model_test
}  // namespace attend
