#include "attend/import/config_keys-inl.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/transformer_config.h"
#include "attend/text/vocabulary.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

constexpr const char* shared_weight = "source_embedding.tokens.weight";

struct MarianArchitecture {
  std::string name;
};

const std::vector<MarianArchitecture>& marian_architectures() {
  static const std::vector<MarianArchitecture> table = {{"MarianMTModel"}};
  return table;
}

const std::vector<ConfigKey>& marian_keys() {
  static const std::vector<ConfigKey> table = {
      {"d_model"},
      {"encoder_layers"},
      {"decoder_layers"},
      {"encoder_attention_heads"},
      {"decoder_attention_heads"},
      {"encoder_ffn_dim"},
      {"decoder_ffn_dim"},
      {"activation_function"},
      {"vocab_size"},
      {"decoder_vocab_size"},
      {"max_position_embeddings"},
      {"scale_embedding"},
      {"dropout"},
      {"attention_dropout"},
      {"is_encoder_decoder", "true"},
      {"share_encoder_decoder_embeddings", "true"},
      {"static_position_embeddings", "true"},
      {"normalize_before", "false"},
      {"normalize_embedding", "false"},
      {"add_final_layer_norm", "false"},
      {"add_bias_logits", "false"},
      {"do_blenderbot_90_layernorm", "false"},
      {"force_bos_token_to_be_generated", "false"},
      // Keys of training, and another name of encoder_layers.
      {"activation_dropout"},
      {"classifier_dropout"},
      {"num_hidden_layers"}};
  return table;
}

struct LayerPart {
  const char *theirs, *ours;
};

// Adds the rows of a stack of `layers` layers.
void add_layers(const char* stack, int64_t layers, const std::vector<LayerPart>& parts,
                std::vector<TensorRow>& rows) {
  for (int64_t layer = 0; layer < layers; ++layer)
    for (const LayerPart& part : parts)
      for (const char* kind : {"weight", "bias"})
        rows.push_back({fmt::format("{}.layers.{}.{}.{}", stack, layer, part.theirs, kind),
                        fmt::format("{}.layer{}_{}.{}", stack, layer, part.ours, kind)});
}

std::vector<TensorRow> marian_tensors(const TransformerConfig& ours) {
  std::vector<TensorRow> rows = {{"shared.weight", shared_weight, Use::token_rows},
                                 {"encoder.embed_tokens.weight", shared_weight, Use::repeated},
                                 {"decoder.embed_tokens.weight", shared_weight, Use::repeated},
                                 {"lm_head.weight", shared_weight, Use::repeated},
                                 // Sinusoids are computed.
                                 {"encoder.embed_positions.weight", {}, Use::unused},
                                 {"decoder.embed_positions.weight", {}, Use::unused}};
  std::vector<LayerPart> parts = {
      {"self_attn.q_proj", "self.query"},    {"self_attn.k_proj", "self.key"},
      {"self_attn.v_proj", "self.value"},    {"self_attn.out_proj", "self.output"},
      {"self_attn_layer_norm", "self_norm"}, {"fc1", "feed_forward.hidden"},
      {"fc2", "feed_forward.output"},        {"final_layer_norm", "feed_forward_norm"}};
  add_layers("encoder", ours.encoder_layers, parts, rows);
  for (const LayerPart& part : {LayerPart{"encoder_attn.q_proj", "cross.query"},
                                {"encoder_attn.k_proj", "cross.key"},
                                {"encoder_attn.v_proj", "cross.value"},
                                {"encoder_attn.out_proj", "cross.output"},
                                {"encoder_attn_layer_norm", "cross_norm"}})
    parts.push_back(part);
  add_layers("decoder", ours.decoder_layers, parts, rows);
  rows.push_back({"final_logits_bias", "output_bias", Use::token_bias_row});
  return rows;
}

// Reads a size that must be equal in both stacks.
int64_t size_of_both(const JsonPosition& config, const char* encoder, const char* decoder,
                     int64_t maximum) {
  const int64_t size = size_in(config, encoder, maximum);
  if (size_in(config, decoder, maximum) != size)
    config.member(decoder).refuse(
        "is not {}, as {} is; models with stacks of different sizes are not read", size, encoder);
  return size;
}

void read_layers(const JsonPosition& config, TransformerConfig& ours) {
  ours.depth = size_in(config, "d_model", 65536);
  ours.encoder_layers = size_in(config, "encoder_layers", 256);
  ours.decoder_layers = size_in(config, "decoder_layers", 256);
  ours.heads = size_of_both(config, "encoder_attention_heads", "decoder_attention_heads", 1024);
  ours.feed_forward = size_of_both(config, "encoder_ffn_dim", "decoder_ffn_dim", 262144);
  if (ours.depth % ours.heads != 0)
    config.member("encoder_attention_heads")
        .refuse("is {}, which does not divide d_model, {}", ours.heads, ours.depth);
  ours.maximum_source_length = size_in(config, "max_position_embeddings", 1 << 20);
  ours.activation = activation_in(config, "activation_function");
  ours.dropout = real_in(config, "dropout", 0.1, 0, max_dropout);
  ours.attention_dropout = real_in(config, "attention_dropout", 0, 0, max_dropout);
  ours.positions = Positions::sinusoidal_halves;
  ours.normalise_first = false;
  ours.tied = Tied::all;
  ours.output_bias = true;
  ours.scale_embedding = config.flag("scale_embedding", false);
}

}  // namespace

std::vector<ForeignClass> marian_classes() { return {{.name = marian_architectures()[0].name}}; }

// Translators of Marian (Junczys-Dowmunt et al. 2018). Answers begin with the vector of padding,
// which takes part in the softmax but is never answered.
ForeignModel read_marian(const JsonPosition& config) {
  ForeignModel model;
  check_values(config, marian_keys(), model.notes);
  model.architecture = architecture_in(config, marian_architectures()).name;
  model.config.type = "transformer";
  auto& ours = model.config.of<TransformerConfig>();
  read_layers(config, ours);
  model.prefix = "model.";
  model.tensors = marian_tensors(ours);
  model.head_tensors = 1;
  model.layers = ours.encoder_layers;
  model.tokens = size_in(config, "vocab_size", max_tokens);
  if (config.number("decoder_vocab_size", model.tokens) != model.tokens)
    config.member("decoder_vocab_size")
        .refuse("is not {}, as vocab_size is; models with two vocabularies are not read",
                model.tokens);
  model.positions = ours.maximum_source_length;
  const int64_t padding = token_in(config, "pad_token_id", model.tokens);
  // Files of 2020 lack the key.
  const int64_t begin = config.has("decoder_start_token_id")
                            ? token_in(config, "decoder_start_token_id", model.tokens)
                            : padding;
  model.output = "lm_head.weight";
  model.tied = config.flag("tie_word_embeddings", true);
  const int64_t end = end_token_in(config, model.tokens, model.notes);
  if (end == padding)
    config.member("eos_token_id")
        .refuse("is the padding token, {}, which never ends an answer", end);
  model.tokenizer = TokenizerFiles::sides;
  model.forces_end = true;
  model.fixed = {.rows = {padding, begin, end, end}, .scores = {{padding, {}, end, {}}}};
  return model;
}

}  // namespace attend::internal
