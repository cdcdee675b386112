#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

// Classes of RoBERTa (Liu et al. 2019) and of types that only differ in their texts and in the
// beginning of their names.
std::vector<EncoderArchitecture> roberta_architectures() {
  std::vector<EncoderArchitecture> all;
  for (const std::string name : {"Roberta", "XLMRoberta", "Camembert"}) {
    all.push_back(
        {name + "Model",
         EncoderHead::none,
         {{"pooler.dense.weight", {}, Use::unused}, {"pooler.dense.bias", {}, Use::unused}}});
    all.push_back({.name = name + "ForMaskedLM",
                   .head = EncoderHead::masked_words,
                   .tensors = {{"lm_head.dense.weight", "layer.weight"},
                               {"lm_head.dense.bias", "layer.bias"},
                               {"lm_head.layer_norm.weight", "layer_norm.weight"},
                               {"lm_head.layer_norm.bias", "layer_norm.bias"},
                               {"lm_head.bias", "bias", Use::token_biases},
                               {"lm_head.decoder.weight", "encoder.input.weight", Use::repeated},
                               {"lm_head.decoder.bias", "bias", Use::repeated},
                               {"pooler.dense.weight", {}, Use::unused},
                               {"pooler.dense.bias", {}, Use::unused}},
                   .gelu_below_words = true});
    all.push_back({name + "ForSequenceClassification",
                   EncoderHead::labels,
                   {{"classifier.dense.weight", "hidden.weight"},
                    {"classifier.dense.bias", "hidden.bias"},
                    {"classifier.out_proj.weight", "output.weight"},
                    {"classifier.out_proj.bias", "output.bias"}}});
    all.push_back({name + "ForTokenClassification",
                   EncoderHead::token_labels,
                   {{"classifier.weight", "output.weight"},
                    {"classifier.bias", "output.bias"},
                    {"pooler.dense.weight", {}, Use::unused},
                    {"pooler.dense.bias", {}, Use::unused}}});
    all.push_back({name + "ForQuestionAnswering",
                   EncoderHead::span,
                   {{"qa_outputs.weight", "output.weight"},
                    {"qa_outputs.bias", "output.bias"},
                    {"pooler.dense.weight", {}, Use::unused},
                    {"pooler.dense.bias", {}, Use::unused}}});
  }
  return all;
}

const EncoderType& roberta_type() {
  static const EncoderType type = {.dropout = "hidden_dropout_prob",
                                   .attention_dropout = "attention_probs_dropout_prob",
                                   .label_dropout = "classifier_dropout",
                                   .epsilon = "layer_norm_eps",
                                   .positions_behind_padding = true,
                                   .prefix = "roberta.",
                                   .keys = bert_keys(),
                                   .tensors = bert_tensors(),
                                   .architectures = roberta_architectures()};
  return type;
}

// Reads a type like RoBERTa with a SentencePiece file as older tokenizer: its tokens are
// `first_pieces`, then the pieces of the file without the first `replaced_pieces`.
ForeignModel read_with(const JsonPosition& config, const std::vector<std::string>& first_pieces,
                       size_t replaced_pieces) {
  ForeignModel model = read_encoder(config, roberta_type());
  model.older = {.special = {"<unk>", "<s>", "</s>", "<pad>", "<mask>"},
                 .first_pieces = first_pieces,
                 .replaced_pieces = replaced_pieces,
                 .pieces = first_pieces.empty() ? "" : "sentencepiece.bpe.model"};
  return model;
}

}  // namespace

std::vector<ForeignClass> roberta_classes() { return classes_of(roberta_type().architectures); }

ForeignModel read_roberta(const JsonPosition& config) { return read_with(config, {}, 0); }

ForeignModel read_xlm_roberta(const JsonPosition& config) {
  return read_with(config, {"<s>", "<pad>", "</s>", "<unk>"}, 3);
}

ForeignModel read_camembert(const JsonPosition& config) {
  return read_with(config, {"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"}, 1);
}

}  // namespace attend::internal
