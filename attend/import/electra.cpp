#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

std::vector<ConfigKey> electra_keys() {
  std::vector<ConfigKey> keys = bert_keys();
  keys.push_back({"embedding_size"});
  // Nothing that is read has it.
  keys.push_back({"summary_last_dropout"});
  return keys;
}

std::vector<EncoderArchitecture> electra_architectures() {
  return {{"ElectraModel"},
          {.name = "ElectraForMaskedLM",
           .head = EncoderHead::masked_words,
           .tensors = {{"generator_predictions.dense.weight", "layer.weight"},
                       {"generator_predictions.dense.bias", "layer.bias"},
                       {"generator_predictions.LayerNorm.weight", "layer_norm.weight"},
                       {"generator_predictions.LayerNorm.bias", "layer_norm.bias"},
                       {"generator_lm_head.bias", "bias", Use::token_biases},
                       {"generator_lm_head.weight", "encoder.input.weight", Use::repeated}},
           .gelu_below_words = true},
          {"ElectraForSequenceClassification", EncoderHead::labels,
           rows_of({{"classifier.dense", "hidden"}, {"classifier.out_proj", "output"}}),
           HiddenActivation::gelu},
          {"ElectraForTokenClassification", EncoderHead::token_labels,
           rows_of({{"classifier", "output"}})},
          // Its output is one score per token, high if another model replaced the token.
          {.name = "ElectraForPreTraining",
           .head = EncoderHead::token_labels,
           .tensors =
               rows_of({{"discriminator_predictions.dense", "layer"},
                        {"discriminator_predictions.dense_prediction", "output", Use::second_row}}),
           .two_labels = {"original", "replaced"}}};
}

void read_embedding(const JsonPosition& config, ForeignModel& model) {
  SourceEncoderConfig& encoder = *find_encoder(model.config);
  const int64_t depth = size_in(config, electra_type().embedding, 65536);
  if (depth == encoder.depth) return;
  encoder.embedding_depth = depth;
  insert_rows(model, rows_of({{"embeddings_project", "encoder.projection"}}));
}

}  // namespace

// ELECTRA (Clark et al. 2020): BERT's layers, with smaller vectors of tokens.
const EncoderType& electra_type() {
  static const EncoderType type = {.embedding = "embedding_size",
                                   .prefix = "electra.",
                                   .keys = electra_keys(),
                                   .tensors = bert_tensors(),
                                   .architectures = electra_architectures(),
                                   .read_more = read_embedding};
  return type;
}

ForeignModel read_electra(const JsonPosition& config) {
  return read_encoder(config, electra_type());
}

std::vector<ForeignClass> electra_classes() { return classes_of(electra_type().architectures); }

}  // namespace attend::internal
