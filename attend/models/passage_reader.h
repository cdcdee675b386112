#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attend/base/settings.h"
#include "attend/models/source_encoder.h"
#include "attend/models/tokenwise_network.h"

namespace attend {

// A source encoder for questions and passages.
struct PassageReaderConfig : SourceEncoderConfig {
  double word_dropout = 0;
  double output_dropout = 0;
  bool output_layer = false;  // as in ModernBERT (Warner et al. 2024)
  // Number of tokens that consecutive parts of a passage share, if question and passage together
  // have more than maximum_source_length tokens. At most half of a part.
  int64_t overlap = 128;

  PassageReaderConfig();

  Settings settings();         // keys model.*
  Settings weight_settings();  // see NetworkConfig::weight_settings()
  std::string no_weights_reason() const { return "model.type = reader"; }
};

// Answers a question with a part of a passage (SQuAD, Rajpurkar et al. 2016). Each token vector of
// a source encoder gets two scores: for the first and for the last token of the answer (Devlin et
// al. 2019, 4.2). Scores become probabilities over the tokens of the passage and the very first
// token of the source, which means an empty answer (4.3).
class PassageReader : public EncoderNetwork {
 public:
  // Error as SourceEncoderConfig::check, and if sources are not pairs of texts.
  PassageReader(const PassageReaderConfig& config, const SourceShape& source);

  // [B, S, 2]: scores of each token as the first and the last of an answer. source [B, S] as
  // PairForm, lengths [B] from 1.
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // batch.target [B, 2]: positions of the first and the last token.
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  // [B, 2, S] float64.
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  TopVectors top_vectors_of(const Batch& batch) const override;
  // The only step returns log probabilities [N, 2 S]: first tokens, then last tokens.
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool attends() const override { return false; }

 private:
  struct State;

  // Bool [B, S]: tokens of the passage, and the first token of the source.
  at::Tensor possible(const at::Tensor& source, const at::Tensor& lengths) const;
  // [B, 2, S] of dtype `type`; impossible tokens have -infinity.
  at::Tensor position_log_probabilities(const at::Tensor& source, const at::Tensor& lengths,
                                        const Pass& pass, at::ScalarType type);

  double word_dropout_, output_dropout_;
  int64_t pair_tokens_, closing_;  // as PairForm
  Linear output_{nullptr};
};

}  // namespace attend
