#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

// Classes of RoBERTa (Liu et al. 2019) and of types that only differ in their texts and in the
// beginning of their names.
std::vector<EncoderArchitecture> roberta_architectures() {
  std::vector<EncoderArchitecture> all;
  for (const std::string name : {"Roberta", "XLMRoberta", "Camembert"}) {
    all.push_back({name + "Model", EncoderHead::none, with_unused({}, {"pooler.dense"})});
    all.push_back(
        {.name = name + "ForMaskedLM",
         .head = EncoderHead::masked_words,
         .tensors = with_unused(word_head("lm_head.dense", "lm_head.layer_norm", "lm_head"),
                                {"pooler.dense"}),
         .gelu_below_words = true});
    all.push_back({name + "ForSequenceClassification", EncoderHead::labels,
                   rows_of({{"classifier.dense", "hidden"}, {"classifier.out_proj", "output"}})});
    all.push_back({name + "ForTokenClassification", EncoderHead::token_labels,
                   with_unused(rows_of({{"classifier", "output"}}), {"pooler.dense"})});
    all.push_back({name + "ForQuestionAnswering", EncoderHead::span,
                   with_unused(rows_of({{"qa_outputs", "output"}}), {"pooler.dense"})});
  }
  return all;
}

const EncoderType& roberta_type() {
  static const EncoderType type = {.positions_after_padding = true,
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
