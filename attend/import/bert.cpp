#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

// BertForPreTraining also has a head for pairs of texts, a layer on top of the pooler. Its other
// head equals BertForMaskedLM's.
EncoderArchitecture masked_words(const std::string& name) {
  return {name, EncoderHead::masked_words,
          with_unused(word_head("cls.predictions.transform.dense",
                                "cls.predictions.transform.LayerNorm", "cls.predictions"),
                      {"pooler.dense", "cls.seq_relationship"})};
}

std::vector<EncoderArchitecture> bert_architectures() {
  return {{"BertModel", EncoderHead::none, with_unused({}, {"pooler.dense"})},
          masked_words("BertForMaskedLM"),
          masked_words("BertForPreTraining"),
          {"BertForSequenceClassification", EncoderHead::labels,
           rows_of({{"pooler.dense", "hidden"}, {"classifier", "output"}})},
          {"BertForTokenClassification", EncoderHead::token_labels,
           with_unused(rows_of({{"classifier", "output"}}), {"pooler.dense"})},
          {"BertForQuestionAnswering", EncoderHead::span,
           with_unused(rows_of({{"qa_outputs", "output"}}), {"pooler.dense"})}};
}

}  // namespace

const EncoderType& bert_type() {
  static const EncoderType type = {.prefix = "bert.",
                                   .keys = bert_keys(),
                                   .tensors = bert_tensors(),
                                   .architectures = bert_architectures()};
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
  add_bert_layers("", rows);
  return rows;
}

void add_bert_layers(const std::string& heads, std::vector<TensorRow>& rows) {
  add_rows({{"attention.self.query" + heads, "self.query"},
            {"attention.self.key" + heads, "self.key"},
            {"attention.self.value" + heads, "self.value"},
            {"attention.output.dense", "self.output"},
            {"attention.output.LayerNorm", "self_norm"},
            {"intermediate.dense", "feed_forward.hidden"},
            {"output.dense", "feed_forward.output"},
            {"output.LayerNorm", "feed_forward_norm"}},
           "encoder.layer.{}.", layer_prefix, rows);
}

ForeignModel read_bert(const JsonPosition& config) { return read_encoder(config, bert_type()); }

std::vector<ForeignClass> bert_classes() { return classes_of(bert_type().architectures); }

}  // namespace attend::internal
