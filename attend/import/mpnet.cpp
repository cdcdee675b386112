#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

constexpr const char* buckets_key = "relative_attention_num_buckets";
constexpr int64_t mpnet_padding = 1;  // whatever pad_token_id is

std::vector<ConfigKey> mpnet_keys() {
  return {{"hidden_size"},
          {"num_hidden_layers"},
          {"num_attention_heads"},
          {"intermediate_size"},
          {"hidden_act"},
          {"hidden_dropout_prob"},
          {"attention_probs_dropout_prob"},
          {"layer_norm_eps"},
          {"vocab_size"},
          {"max_position_embeddings"},
          {buckets_key, "32", "transformers computes 32 buckets of distances"},
          // In transformers, it changes nothing.
          {"classifier_dropout"}};
}

std::vector<TensorRow> mpnet_tensors() {
  std::vector<TensorRow> rows = {
      {"embeddings.word_embeddings.weight", "encoder.input.weight", Use::token_rows},
      {"embeddings.position_embeddings.weight", "encoder.positions.table", Use::position_rows},
      {"embeddings.LayerNorm.weight", "encoder.norm.weight"},
      {"embeddings.LayerNorm.bias", "encoder.norm.bias"},
      {"embeddings.position_ids", {}, Use::unused},
      {"encoder.relative_attention_bias.weight", "encoder.layers.layer0_self.group0.buckets_table",
       Use::transposed}};
  add_rows({{"attention.attn.q", "self.query"},
            {"attention.attn.k", "self.key"},
            {"attention.attn.v", "self.value"},
            {"attention.attn.o", "self.output"},
            {"attention.LayerNorm", "self_norm"},
            {"intermediate.dense", "feed_forward.hidden"},
            {"output.dense", "feed_forward.output"},
            {"output.LayerNorm", "feed_forward_norm"}},
           "encoder.layer.{}.", layer_prefix, rows);
  return rows;
}

std::vector<EncoderArchitecture> mpnet_architectures() {
  const std::vector<std::string> pooler = {"pooler.dense"};
  return {
      {"MPNetModel", EncoderHead::none, with_unused({}, pooler)},
      {.name = "MPNetForMaskedLM",
       .head = EncoderHead::masked_words,
       .tensors = with_unused(word_head("lm_head.dense", "lm_head.layer_norm", "lm_head"), pooler),
       .gelu_below_words = true},
      {"MPNetForSequenceClassification", EncoderHead::labels,
       with_unused(rows_of({{"classifier.dense", "hidden"}, {"classifier.out_proj", "output"}}),
                   pooler)},
      {"MPNetForTokenClassification", EncoderHead::token_labels,
       with_unused(rows_of({{"classifier", "output"}}), pooler)}};
}

void read_mpnet_more(const JsonPosition& config, ForeignModel& model) {
  if (model.first_position != mpnet_padding + 1)
    config.member("pad_token_id").refuse("is not {}, after which positions begin", mpnet_padding);
  SourceEncoderConfig& encoder = *find_encoder(model.config);
  encoder.self.bias = "buckets:32,128";
  encoder.shared_bias = true;
  model.older = {.special = {.unknown = "[UNK]",
                             .begin = "<s>",
                             .end = "</s>",
                             .padding = "<pad>",
                             .mask = "<mask>"},
                 .two_ends = true};
}

void write_mpnet_more(ModelConfig& ours, Json& config) {
  const SourceEncoderConfig& encoder = *find_encoder(ours);
  config[buckets_key] = 32;
  config["pad_token_id"] = mpnet_padding;
  config["max_position_embeddings"] = encoder.maximum_source_length + mpnet_padding + 1;
}

}  // namespace

// MPNet (Song et al. 2020), with learned positions and T5's bias of distances, the same in all
// layers.
const EncoderType& mpnet_type() {
  static const EncoderType type = {.label_dropout = "hidden_dropout_prob",
                                   .positions_after_padding = true,
                                   .shares_bias = true,
                                   .prefix = "mpnet.",
                                   .keys = mpnet_keys(),
                                   .tensors = mpnet_tensors(),
                                   .architectures = mpnet_architectures(),
                                   .read_more = read_mpnet_more,
                                   .write_more = write_mpnet_more};
  return type;
}

ForeignModel read_mpnet(const JsonPosition& config) { return read_encoder(config, mpnet_type()); }

std::vector<ForeignClass> mpnet_classes() { return classes_of(mpnet_type().architectures); }

}  // namespace attend::internal
