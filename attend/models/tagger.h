#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "attend/base/settings.h"
#include "attend/models/source_encoder.h"
#include "attend/models/tokenwise_network.h"

namespace attend {

// Layers of both kinds of a source encoder, from 0 on.
struct TaggerConfig : SourceEncoderConfig {
  double word_dropout = 0.1;
  double output_dropout = 0.1;
  // As MaskedLanguageModelConfig; layers alone read one.
  bool class_token = true;
  bool output_layer = false;  // as ModernBERT's (Warner et al. 2024)

  TaggerConfig();

  Settings settings();  // keys model.*
  // The setting by which nothing attends, where nothing does.
  std::string why_no_weights() const;
  // A target is cut where its source is.
  int64_t maximum_target_length() const { return std::numeric_limits<int64_t>::max(); }
};

// A label for each token of a text: softmax regression on the vectors that a source encoder gives
// to the tokens. Recurrent layers read both ways (Graves & Schmidhuber 2005); the weights of those
// of self-attention may begin as a MaskedLanguageModel's (Devlin et al. 2019, 4).
//
// A network from pairs answers; this one with as many labels as its source has tokens, which no
// EOS follows.
class Tagger : public TokenwiseNetwork {
 public:
  // The ids of tokens and targets are a Vocabulary's. Error as SourceEncoderConfig::check and on
  // frames.
  Tagger(const TaggerConfig& config, const SourceShape& source, int64_t target_tokens);

  // [B, S, labels]: scores of the ids after Vocabulary::unknown. source [B, S], lengths [B] from 1.
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // Error where batch.target [B, T] is not as long as batch.source.
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;

 private:
  at::Tensor answered(const at::Tensor& tokens, const at::Tensor& vectors) override;

  double word_dropout_, output_dropout_;
  Linear output_{nullptr};
};

}  // namespace attend
