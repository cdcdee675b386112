#include "attend/base/error.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/export-inl.h"
#include "attend/models/embedder.h"

namespace attend::internal {
namespace {

Json config_of(const EmbedderConfig& ours, int64_t tokens) {
  Json config = {
      {"architectures", Json::array({"T5EncoderModel"})},
      {"model_type", "t5"},
      {"is_encoder_decoder", false},
      {"d_model", ours.depth},
      {"d_kv", ours.head_depth > 0 ? ours.head_depth : ours.depth / ours.heads},
      {"d_ff", ours.feed_forward},
      {"num_layers", ours.layers},
      {"num_heads", ours.heads},
      {"feed_forward_proj", (ours.gated ? "gated-" : "") + activation_name(ours.activation)},
      {"layer_norm_epsilon", ours.epsilon},
      {"dropout_rate", ours.dropout},
      {"vocab_size", tokens},
      {"pad_token_id", 0}};
  for (const BiasChoice& bias : parse_biases(ours.self.choices().bias)) {
    if (bias.numbers.size() != 2) continue;
    config["relative_attention_num_buckets"] = bias.numbers[0];
    config["relative_attention_max_distance"] = bias.numbers[1];
  }
  return config;
}

}  // namespace

ExportedFolder exported_t5_encoder(const PairModel& model, const std::string& folder) {
  ModelConfig whole = model.config;
  if (whole.type != type_of(EncoderHead::none))
    fail("{}: model.type is {}, and its layers are T5's; only vectors of its encoder are exported",
         folder, whole.type);
  const ExportedTokens tokens = exported_tokens(model, folder);
  const auto& ours = whole.of<EmbedderConfig>();
  ExportedFolder made{.architecture = "T5EncoderModel",
                      .config = config_of(ours, std::ssize(tokens.vectors))};
  made.again = read_again(made.config, read_t5);
  // The length is in tokenizer_config.json.
  limit_source(ours.maximum_source_length, made.again.config);
  add_exported(model, tokens, made);
  add_tokenizer_config(model, tokens, made);
  return made;
}

}  // namespace attend::internal
