#include "attend/models/vit.h"

#include <utility>

#include "attend/import/config_keys-inl.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/import/vision-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

std::vector<ConfigKey> vision_keys() {
  return {{"hidden_size"},
          {"num_hidden_layers"},
          {"num_attention_heads"},
          {"intermediate_size"},
          {"hidden_act"},
          {"hidden_dropout_prob"},
          {"attention_probs_dropout_prob"},
          {"layer_norm_eps"},
          {"image_size"},
          {"patch_size"},
          {"num_channels"},
          {"qkv_bias"}};
}

std::vector<TensorRow> vision_tensors(const VisionType& type, bool projection_biases) {
  std::vector<TensorRow> rows;
  for (const std::string& token : type.class_tokens)
    rows.push_back({"embeddings." + token, "encoder.class_token", Use::class_tokens,
                    std::ssize(rows), std::ssize(type.class_tokens)});
  const std::vector<TensorRow> others = {
      {"embeddings.position_embeddings", "encoder.class_token", Use::class_positions},
      {"embeddings.position_embeddings", "encoder.positions.table", Use::grid_positions},
      {"embeddings.patch_embeddings.projection.weight", "encoder.input.weight", Use::patch_weights},
      {"embeddings.patch_embeddings.projection.bias", "encoder.input.bias", Use::patch_biases},
      {"layernorm.weight", "encoder.layers.norm.weight"},
      {"layernorm.bias", "encoder.layers.norm.bias"}};
  rows.insert(rows.end(), others.begin(), others.end());
  struct Part {
    const char *theirs, *ours;
    bool is_projection = false;
  };
  for (const auto& [theirs, ours, is_projection] :
       {Part{"attention.attention.query", "self.query", true},
        Part{"attention.attention.key", "self.key", true},
        Part{"attention.attention.value", "self.value", true},
        Part{"attention.output.dense", "self.output"}, Part{"layernorm_before", "self_norm"},
        Part{"intermediate.dense", "feed_forward.hidden"},
        Part{"output.dense", "feed_forward.output"}, Part{"layernorm_after", "feed_forward_norm"}})
    for (const char* kind : {"weight", "bias"}) {
      const bool is_zero = is_projection && !projection_biases && std::string_view(kind) == "bias";
      rows.push_back({is_zero ? "" : fmt::format("encoder.layer.{{}}.{}.{}", theirs, kind),
                      fmt::format("encoder.layers.layer{{}}_{}.{}", ours, kind)});
    }
  rows.push_back({"classifier.weight", "output.weight"});
  rows.push_back({"classifier.bias", "output.bias"});
  return rows;
}

void read_images(const JsonPosition& config, FrameConfig& frames) {
  const int64_t side = size_in(config, "image_size", 4096);
  frames.patch = size_in(config, "patch_size", 256);
  if (side % frames.patch != 0)
    config.member("patch_size")
        .refuse("is {}, which does not divide image_size, {}", frames.patch, side);
  frames.image_height = frames.image_width = side;
  const int64_t channels = config.number("num_channels", 3);
  if (channels != 1 && channels != 3)
    config.member("num_channels").refuse("is {}; 1 and 3 are read", channels);
  frames.colours = channels == 3;
}

}  // namespace

const std::vector<VisionType>& vision_types() {
  // Touvron et al. 2021 (DeiT): answers are read from the class token, not the distillation token.
  static const std::vector<VisionType> table = {
      {"vit", "ViTForImageClassification", "vit.", "ViTImageProcessor", {"cls_token"}},
      {"deit",
       "DeiTForImageClassification",
       "deit.",
       "DeiTImageProcessor",
       {"cls_token", "distillation_token"}}};
  return table;
}

ForeignModel read_vision(const JsonPosition& config, const VisionType& type) {
  ForeignModel model;
  check_values(config, vision_keys(), model.notes);
  model.architecture = architecture_in(config, std::vector<VisionType>{type}).name;
  model.config.type = "vit";
  auto& ours = model.config.of<VitConfig>();
  read_layer_sizes(config, {}, ours);
  ours.dropout = real_in(config, "hidden_dropout_prob", 0, 0, max_dropout);
  ours.attention_dropout = real_in(config, "attention_probs_dropout_prob", 0, 0, max_dropout);
  ours.epsilon = real_in(config, "layer_norm_eps", 1e-12, 1e-15, 1);
  ours.self.bias = MechanismSettings::no_bias;
  ours.registers = std::ssize(type.class_tokens) - 1;
  model.images.emplace();
  model.images->processor = type.processor;
  read_images(config, model.images->frames);
  const FrameConfig& frames = model.images->frames;
  ours.maximum_source_length = frames.rows() * frames.columns();
  model.prefix = type.prefix;
  model.tensors = vision_tensors(type, config.flag("qkv_bias", true));
  model.head_tensors = 2;
  model.layers = ours.layers;
  model.first_position = std::ssize(type.class_tokens);
  model.positions = model.first_position + ours.maximum_source_length;
  model.labels = labels_in(config, model.notes);
  return model;
}

// Checkpoints may have a pooler, which the class does not use.
std::vector<ForeignClass> classes_of(const VisionType& type) {
  return {{.name = type.name,
           .required = {"classifier.weight", "classifier.bias"},
           .others = {"pooler.dense.weight", "pooler.dense.bias"}}};
}

std::vector<ForeignClass> vit_classes() { return classes_of(vision_types()[0]); }
std::vector<ForeignClass> deit_classes() { return classes_of(vision_types()[1]); }

ForeignModel read_vit(const JsonPosition& config) { return read_vision(config, vision_types()[0]); }
ForeignModel read_deit(const JsonPosition& config) {
  return read_vision(config, vision_types()[1]);
}

}  // namespace attend::internal
