#include <fmt/format.h>

#include "attend/import/translator_layers-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

constexpr const char* shared_weight = "source_embedding.tokens.weight";

struct LayerPart {
  const char *theirs, *ours;
};

// Adds the rows of a stack of `layers` layers.
void add_layers(const char* stack, int64_t layers, const std::vector<LayerPart>& parts,
                std::vector<TensorRow>& rows) {
  for (int64_t layer = 0; layer < layers; ++layer)
    for (const LayerPart& part : parts)
      add_translator_part(fmt::format("{}.layers.{}.{}", stack, layer, part.theirs),
                          fmt::format("{}.layer{}_{}", stack, layer, part.ours), rows);
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

constexpr const char *their_shared = "shared.weight",
                     *their_answers = "decoder.embed_tokens.weight",
                     *their_output = "lm_head.weight";

// Tables of their own may hold other vectors of the tokens that begin and end answers.
void complete_tables(const TensorFile& theirs, ForeignModel& model) {
  const auto find = [&](const std::string& name) {
    const auto found = theirs.tensors.find(model.prefix + name);
    const auto bare = theirs.tensors.find(name);
    if (found != theirs.tensors.end()) return found->second;
    return bare == theirs.tensors.end() ? at::Tensor() : bare->second;
  };
  if (has_another_table(find(their_shared), find(their_answers)) ||
      has_another_table(find(their_shared), find(their_output)))
    model.config.of<TransformerConfig>().shared_tokens.clear();
}

}  // namespace

bool has_another_table(const at::Tensor& shared, const at::Tensor& other) {
  return shared.defined() && other.defined() &&
         (shared.scalar_type() != other.scalar_type() || !shared.equal(other));
}

std::vector<ConfigKey> with_translator_keys(const std::vector<ConfigKey>& own) {
  std::vector<ConfigKey> all = {{"d_model"},
                                {"encoder_layers"},
                                {"decoder_layers"},
                                {"encoder_attention_heads"},
                                {"decoder_attention_heads"},
                                {"encoder_ffn_dim"},
                                {"decoder_ffn_dim"},
                                {"activation_function"},
                                {"vocab_size"},
                                {"max_position_embeddings"},
                                {"scale_embedding"},
                                {"dropout"},
                                {"attention_dropout"},
                                {"is_encoder_decoder", "true"},
                                {"add_bias_logits", "false"},
                                {"do_blenderbot_90_layernorm", "false"},
                                {"force_bos_token_to_be_generated", "false"},
                                // Keys of training, and another name of encoder_layers.
                                {"activation_dropout"},
                                {"classifier_dropout"},
                                {"num_hidden_layers"}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

void add_translator_part(const std::string& theirs, const std::string& ours,
                         std::vector<TensorRow>& rows) {
  for (const char* kind : {"weight", "bias"})
    rows.push_back({fmt::format("{}.{}", theirs, kind), fmt::format("{}.{}", ours, kind)});
}

std::vector<TensorRow> translator_tensors(const TransformerConfig& ours) {
  std::vector<TensorRow> rows = {{their_shared, shared_weight, Use::token_rows},
                                 {"encoder.embed_tokens.weight", shared_weight, Use::repeated},
                                 {their_answers, shared_weight, Use::repeated_answers}};
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
  return rows;
}

void add_translator_output(const TensorRow& biases, ForeignModel& model) {
  model.output = their_output;
  model.tensors.push_back({model.output, shared_weight, Use::repeated_outputs});
  model.tensors.push_back(biases);
  model.head_tensors = 2;
}

void read_translator_layers(const JsonPosition& config, const char* activation,
                            TransformerConfig& ours) {
  ours.depth = size_in(config, "d_model", 65536);
  ours.encoder_layers = size_in(config, "encoder_layers", 256);
  ours.decoder_layers = size_in(config, "decoder_layers", 256);
  ours.heads = size_of_both(config, "encoder_attention_heads", "decoder_attention_heads", 1024);
  ours.feed_forward = size_of_both(config, "encoder_ffn_dim", "decoder_ffn_dim", 262144);
  if (ours.depth % ours.heads != 0)
    config.member("encoder_attention_heads")
        .refuse("is {}, which does not divide d_model, {}", ours.heads, ours.depth);
  ours.maximum_source_length = size_in(config, "max_position_embeddings", 1 << 20);
  ours.activation = activation_in(config, "activation_function", activation);
  ours.dropout = real_in(config, "dropout", 0.1, 0, max_dropout);
  ours.attention_dropout = real_in(config, "attention_dropout", 0, 0, max_dropout);
  ours.tied = Tied::all;
  ours.output_bias = true;
}

void read_translator_tokens(const JsonPosition& config, const char* usual_begin,
                            ForeignModel& model) {
  model.tokens = size_in(config, "vocab_size", max_tokens);
  const int64_t padding = token_in(config, "pad_token_id", model.tokens);
  constexpr const char* begin_key = "decoder_start_token_id";
  const int64_t begin =
      token_in(config, config.has(begin_key) ? begin_key : usual_begin, model.tokens);
  const int64_t end = end_token_in(config, model.tokens, model.notes);
  if (end == padding)
    config.member("eos_token_id")
        .refuse("is the padding token, {}, which never ends an answer", end);
  model.tied = config.flag("tie_word_embeddings", true);
  model.fixed = {.rows = {padding, begin, end, end}, .scores = {{{}, {}, end, {}}}};
  model.config.of<TransformerConfig>().shared_tokens = shared_tokens(*model.fixed);
  model.complete = complete_tables;
}

}  // namespace attend::internal
