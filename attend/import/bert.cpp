#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

// BertForPreTraining also has a head for pairs of texts, a layer on top of the pooler. Its other
// head equals BertForMaskedLM's.
EncoderArchitecture masked_words(const std::string& name) {
  return {name,
          EncoderHead::masked_words,
          {{"cls.predictions.transform.dense.weight", "layer.weight"},
           {"cls.predictions.transform.dense.bias", "layer.bias"},
           {"cls.predictions.transform.LayerNorm.weight", "layer_norm.weight"},
           {"cls.predictions.transform.LayerNorm.bias", "layer_norm.bias"},
           {"cls.predictions.bias", "bias", Use::token_biases},
           {"cls.predictions.decoder.weight", "encoder.input.weight", Use::repeated},
           {"cls.predictions.decoder.bias", "bias", Use::repeated},
           {"pooler.dense.weight", {}, Use::unused},
           {"pooler.dense.bias", {}, Use::unused},
           {"cls.seq_relationship.weight", {}, Use::unused},
           {"cls.seq_relationship.bias", {}, Use::unused}}};
}

}  // namespace

const EncoderType& bert_type() {
  static const EncoderType type = {.dropout = "hidden_dropout_prob",
                                   .attention_dropout = "attention_probs_dropout_prob",
                                   .label_dropout = "classifier_dropout",
                                   .epsilon = "layer_norm_eps",
                                   .prefix = "bert.",
                                   .keys = bert_keys(),
                                   .tensors = bert_tensors(),
                                   .architectures = {{"BertModel",
                                                      EncoderHead::none,
                                                      {{"pooler.dense.weight", {}, Use::unused},
                                                       {"pooler.dense.bias", {}, Use::unused}}},
                                                     masked_words("BertForMaskedLM"),
                                                     masked_words("BertForPreTraining"),
                                                     {"BertForSequenceClassification",
                                                      EncoderHead::labels,
                                                      {{"pooler.dense.weight", "hidden.weight"},
                                                       {"pooler.dense.bias", "hidden.bias"},
                                                       {"classifier.weight", "output.weight"},
                                                       {"classifier.bias", "output.bias"}}},
                                                     {"BertForTokenClassification",
                                                      EncoderHead::token_labels,
                                                      {{"classifier.weight", "output.weight"},
                                                       {"classifier.bias", "output.bias"},
                                                       {"pooler.dense.weight", {}, Use::unused},
                                                       {"pooler.dense.bias", {}, Use::unused}}},
                                                     {"BertForQuestionAnswering",
                                                      EncoderHead::span,
                                                      {{"qa_outputs.weight", "output.weight"},
                                                       {"qa_outputs.bias", "output.bias"},
                                                       {"pooler.dense.weight", {}, Use::unused},
                                                       {"pooler.dense.bias", {}, Use::unused}}}}};
  return type;
}

std::vector<ConfigKey> bert_keys() {
  return {{"hidden_size"},
          {"num_hidden_layers"},
          {"num_attention_heads"},
          {"intermediate_size"},
          {"hidden_act"},
          {"hidden_dropout_prob"},
          {"attention_probs_dropout_prob"},
          {"classifier_dropout"},
          {"layer_norm_eps"},
          {"vocab_size"},
          {"max_position_embeddings"},
          {"type_vocab_size"},
          {"position_embedding_type", R"("absolute")"}};
}

std::vector<TensorRow> bert_tensors() {
  std::vector<TensorRow> rows = {
      {"embeddings.word_embeddings.weight", "encoder.input.weight", Use::token_rows},
      {"embeddings.position_embeddings.weight", "encoder.positions.table", Use::position_rows},
      // A single text has type 0.
      {"embeddings.token_type_embeddings.weight", "encoder.positions.table", Use::first_row_added},
      {"embeddings.LayerNorm.weight", "encoder.norm.weight"},
      {"embeddings.LayerNorm.bias", "encoder.norm.bias"},
      {"embeddings.position_ids", {}, Use::unused},
      {"embeddings.token_type_ids", {}, Use::unused}};
  // Their names and ours of parts with a weight and a bias in each layer.
  constexpr std::pair<const char*, const char*> parts[] = {
      {"attention.self.query", "self.query"},      {"attention.self.key", "self.key"},
      {"attention.self.value", "self.value"},      {"attention.output.dense", "self.output"},
      {"attention.output.LayerNorm", "self_norm"}, {"intermediate.dense", "feed_forward.hidden"},
      {"output.dense", "feed_forward.output"},     {"output.LayerNorm", "feed_forward_norm"}};
  for (const auto& [theirs, ours] : parts)
    for (const char* kind : {"weight", "bias"})
      rows.push_back({fmt::format("encoder.layer.{{}}.{}.{}", theirs, kind),
                      fmt::format("encoder.layers.layer{{}}_{}.{}", ours, kind)});
  return rows;
}

ForeignModel read_bert(const JsonPosition& config) { return read_encoder(config, bert_type()); }

std::vector<ForeignClass> bert_classes() { return classes_of(bert_type().architectures); }

}  // namespace attend::internal
