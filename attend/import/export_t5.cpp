#include "attend/base/error.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/export_translator-inl.h"
#include "attend/models/embedder.h"

namespace attend::internal {
namespace {

// Returns the keys of the layers, which both classes have.
Json config_of(const char* architecture, const LayersConfig& ours, int64_t tokens) {
  Json config = {
      {"architectures", Json::array({architecture})},
      {"model_type", "t5"},
      {"d_model", ours.depth},
      {"d_kv", ours.head_depth > 0 ? ours.head_depth : ours.depth / ours.heads},
      {"d_ff", ours.feed_forward},
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

Json config_of(const EmbedderConfig& ours, int64_t tokens) {
  Json config = config_of("T5EncoderModel", ours, tokens);
  config["is_encoder_decoder"] = false;
  config["num_layers"] = ours.layers;
  return config;
}

// For T5, tie_word_embeddings says whether the output is scaled. transformers compares tensors to
// find out whether they are one.
Json config_of(const TransformerConfig& ours, int64_t tokens) {
  Json config = config_of("T5ForConditionalGeneration", ours, tokens);
  config.update({{"is_encoder_decoder", true},
                 {"num_layers", ours.encoder_layers},
                 {"num_decoder_layers", ours.decoder_layers},
                 {"tie_word_embeddings", ours.scale_output}});
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

ExportedFolder exported_t5(const PairModel& model, const std::string& folder) {
  ExportedTokens tokens = exported_tokens(model, folder);
  ModelConfig whole = model.config;
  const auto& ours = whole.of<TransformerConfig>();
  ExportedFolder made{.architecture = "T5ForConditionalGeneration",
                      .config = config_of(ours, std::ssize(tokens.vectors))};
  made.end = end_of_answers(model, {}, folder);
  add_tokenizer_config(model, tokens, made);
  const int64_t padding = made.config["pad_token_id"];
  made.config["eos_token_id"] = *made.end;
  made.config["decoder_start_token_id"] = begin_of_answers(model, {padding, *made.end});
  made.again = read_again(made.config, read_t5);
  set_t5_output(ours.tied, made.again);
  take_fixed_rows(model, tokens, made.again);
  if (tokens.separate)
    fail(
        "{}: the tokens that begin and end answers have vectors of their own after training, and "
        "{} has one for each token; train a new import, which has model.shared_tokens",
        folder, made.architecture);
  add_exported(model, tokens, made);
  add_translator_generation(model, std::nullopt, made);
  return made;
}

}  // namespace attend::internal
