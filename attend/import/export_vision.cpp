#include "attend/base/error.h"
#include "attend/import/config_keys-inl.h"
#include "attend/import/export-inl.h"
#include "attend/import/vision-inl.h"
#include "attend/models/vit.h"

namespace attend::internal {
namespace {

Json size_of(int64_t height, int64_t width) { return {{"height", height}, {"width", width}}; }

// Returns the preprocessor_config.json. Pixels go from 0 to 1, as our models read them.
Json processor_of(const FrameConfig& frames) {
  const bool cuts = frames.resized_height > 0;
  const Json size = size_of(frames.image_height, frames.image_width);
  Json processor = {{"image_processor_type", cuts ? "DeiTImageProcessor" : "ViTImageProcessor"},
                    {"do_resize", frames.resize != Resizing::none},
                    {"size", cuts ? size_of(frames.resized_height, frames.resized_width) : size},
                    {"resample", frames.resize == Resizing::bicubic ? 3 : 2},
                    {"do_rescale", true},
                    {"rescale_factor", 1.0 / 255},
                    {"do_normalize", false}};
  if (cuts) {
    processor["do_center_crop"] = true;
    processor["crop_size"] = size;
  }
  return processor;
}

const VisionType& type_with(int64_t registers, const std::string& folder) {
  for (const VisionType& type : vision_types())
    if (std::ssize(type.class_tokens) == registers + 1) return type;
  fail("{}: model.registers is {}, which no class of transformers has; 0 and 1 are exported",
       folder, registers);
}

}  // namespace

ExportedFolder exported_vision(const PairModel& model, const std::string& folder) {
  ModelConfig whole = model.config;
  const auto& ours = whole.of<VitConfig>();
  const FrameConfig& frames = model.text.frames;
  if (model.text.source_units != model.config.row().text.source_units ||
      frames.image_height != frames.image_width)
    fail("{}: its sources are not square images; models of transformers read only square ones",
         folder);
  const VisionType& type = type_with(ours.registers, folder);
  ExportedFolder made{.architecture = type.name};
  made.config = {{"architectures", Json::array({type.name})},
                 {"model_type", type.model_type},
                 {"hidden_size", ours.depth},
                 {"num_hidden_layers", ours.layers},
                 {"num_attention_heads", ours.heads},
                 {"intermediate_size", ours.feed_forward},
                 {"hidden_act", activation_name(ours.activation)},
                 {"hidden_dropout_prob", ours.dropout},
                 {"attention_probs_dropout_prob", ours.attention_dropout},
                 {"layer_norm_eps", ours.epsilon},
                 {"image_size", frames.image_height},
                 {"patch_size", frames.patch},
                 {"num_channels", frames.channels()},
                 {"qkv_bias", true}};
  add_labels(model, made.config);
  made.again = read_again(made.config,
                          [&](const JsonPosition& config) { return read_vision(config, type); });
  add_exported(model, {}, made);
  made.documents["preprocessor_config.json"] = processor_of(frames);
  return made;
}

}  // namespace attend::internal
