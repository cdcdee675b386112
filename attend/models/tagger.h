#pragma once

#include <cstdint>
#include <limits>

#include "attend/base/settings.h"
#include "attend/models/source_encoder.h"
#include "attend/models/tokenwise_network.h"

namespace attend {

// A source encoder with any number of layers of either kind.
struct TaggerConfig : SourceEncoderConfig {
  double word_dropout = 0.1;
  double output_dropout = 0.1;
  // See MaskedLanguageModelConfig; unused without self-attention layers.
  bool class_token = true;
  bool output_layer = false;  // as in ModernBERT (Warner et al. 2024)
  bool output_norm = true;    // a norm after this layer; not in ELECTRA (Clark et al. 2020)

  TaggerConfig();

  Settings settings();  // keys model.*
  // Targets are truncated like their sources.
  int64_t maximum_target_length() const { return std::numeric_limits<int64_t>::max(); }
};

// A label for each token of a text: softmax regression on the token vectors of a source encoder.
// Recurrent layers read in both directions (Graves & Schmidhuber 2005). Self-attention layers may
// start from the weights of a MaskedLanguageModel (Devlin et al. 2019, 4).
//
// The answer has one label per source token, without EOS.
class Tagger : public TokenwiseNetwork {
 public:
  // The ids of tokens and targets are ids of a Vocabulary. Error as SourceEncoderConfig::check, and
  // for frames.
  Tagger(const TaggerConfig& config, const SourceShape& source, int64_t target_tokens);

  // [B, S, labels], scores of the ids after Vocabulary::unknown. source [B, S], lengths [B] from 1.
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // Error if batch.target [B, T] and batch.source differ in length.
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;

 private:
  at::Tensor answered(const at::Tensor& tokens, const at::Tensor& vectors) override;

  double word_dropout_, output_dropout_;
  Linear output_{nullptr};
};

}  // namespace attend
