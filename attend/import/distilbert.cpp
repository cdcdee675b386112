#include <utility>

#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

std::vector<TensorRow> distilbert_tensors() {
  std::vector<TensorRow> rows = {
      {"embeddings.word_embeddings.weight", "encoder.input.weight", Use::token_rows},
      {"embeddings.position_embeddings.weight", "encoder.positions.table", Use::position_rows},
      {"embeddings.LayerNorm.weight", "encoder.norm.weight"},
      {"embeddings.LayerNorm.bias", "encoder.norm.bias"},
      {"embeddings.position_ids", {}, Use::unused}};
  add_rows({{"attention.q_lin", "self.query"},
            {"attention.k_lin", "self.key"},
            {"attention.v_lin", "self.value"},
            {"attention.out_lin", "self.output"},
            {"sa_layer_norm", "self_norm"},
            {"ffn.lin1", "feed_forward.hidden"},
            {"ffn.lin2", "feed_forward.output"},
            {"output_layer_norm", "feed_forward_norm"}},
           "transformer.layer.{}.", layer_prefix, rows);
  return rows;
}

}  // namespace

// DistilBERT (Sanh et al. 2019).
const EncoderType& distilbert_type() {
  static const EncoderType type = {
      .sizes = {.depth = "dim",
                .layers = "n_layers",
                .heads = "n_heads",
                .feed_forward = "hidden_dim",
                .activation = "activation"},
      .dropout = "dropout",
      .attention_dropout = "attention_dropout",
      .label_dropout = "seq_classif_dropout",
      .span_dropout = "qa_dropout",
      .epsilon = nullptr,
      .prefix = "distilbert.",
      .keys = {{"dim"},
               {"n_layers"},
               {"n_heads"},
               {"hidden_dim"},
               {"activation"},
               {"dropout"},
               {"attention_dropout"},
               {"seq_classif_dropout"},
               {"qa_dropout"},
               {"vocab_size"},
               {"max_position_embeddings"}},
      .tensors = distilbert_tensors(),
      .architectures = {{"DistilBertModel"},
                        {"DistilBertForMaskedLM",
                         EncoderHead::masked_words,
                         {{"vocab_transform.weight", "layer.weight"},
                          {"vocab_transform.bias", "layer.bias"},
                          {"vocab_layer_norm.weight", "layer_norm.weight"},
                          {"vocab_layer_norm.bias", "layer_norm.bias"},
                          {"vocab_projector.bias", "bias", Use::token_biases},
                          {"vocab_projector.weight", "encoder.input.weight", Use::repeated}}},
                        {"DistilBertForSequenceClassification", EncoderHead::labels,
                         rows_of({{"pre_classifier", "hidden"}, {"classifier", "output"}}),
                         HiddenActivation::relu},
                        {"DistilBertForTokenClassification", EncoderHead::token_labels,
                         rows_of({{"classifier", "output"}})},
                        {"DistilBertForQuestionAnswering", EncoderHead::span,
                         rows_of({{"qa_outputs", "output"}})}}};
  return type;
}

std::vector<ForeignClass> distilbert_classes() {
  return classes_of(distilbert_type().architectures);
}

ForeignModel read_distilbert(const JsonPosition& config) {
  return read_encoder(config, distilbert_type());
}

}  // namespace attend::internal
