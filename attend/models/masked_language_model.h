#pragma once

#include "attend/models/source_encoder.h"
#include "attend/models/tokenwise_network.h"
#include "attend/nn/token_loss.h"
#include "attend/text/vocabulary.h"

namespace attend {

// A source encoder with layers that learns from unlabelled texts.
struct MaskedLanguageModelConfig : SourceEncoderConfig {
  double masked_share = 0.15;
  // Whether layers read an additional vector, which a Classifier with pooling `class` can start
  // from. Not needed if each text begins with a token that represents it.
  bool class_token = true;
  // Adds a layer with the model's activation and a norm between the vectors and the output (as
  // BERT).
  bool output_layer = false;

  MaskedLanguageModelConfig();

  Settings settings();  // keys model.*
  // Error as SourceEncoderConfig, without layers, or if the output does not fit the token vectors.
  void check() const;
};

// Input `shown` [B, S] of a masked language model and its targets `asked`: the true token at
// positions to predict, otherwise Vocabulary::padding.
struct MaskedTokens {
  at::Tensor shown, asked;
};

// Chooses the given share of the known tokens of each row of source [B, S] with lengths [B],
// rounded, at least one if there is a known token. Unknown tokens are never chosen. 80 % of the
// chosen tokens are hidden, 10 % are replaced by another token and 10 % stay unchanged (Devlin et
// al. 2019, 3.1 and A.2).
MaskedTokens mask_tokens(const at::Tensor& source, const at::Tensor& lengths, double share,
                         int64_t tokens, const at::Generator& generator);

// Number of tokens that mask_tokens() chooses in a row with `known` known tokens.
int64_t masked_tokens(int64_t known, double share);

// As mask_tokens(), with random numbers for each row that depend only on its tokens, not on its
// index or the other rows.
MaskedTokens mask_tokens_by_content(const at::Tensor& source, const at::Tensor& lengths,
                                    double share, int64_t tokens);

// The encoder of a classifier (BERT, Devlin et al. 2019), trained to predict hidden tokens. A
// Classifier with pooling `class` can start from its weights of the same names.
//
// Its answer is the source with unknown tokens filled in, then EOS with certainty.
class MaskedLanguageModel : public TokenwiseNetwork {
 public:
  // Error as MaskedLanguageModelConfig::check, and for frames.
  MaskedLanguageModel(const MaskedLanguageModelConfig& config, const SourceShape& source);

  // Logits [B, S, V] at every token of source [B, S].
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // The loss of batch.source: mean over the chosen tokens times the number of tokens of
  // batch.target. Without a generator, tokens are chosen by the content of each row, and the mean
  // and the factor are computed per row. The sum over batches then does not depend on how rows are
  // batched.
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;

 private:
  at::Tensor as_asked(const at::Tensor& source) const override;
  at::Tensor answered(const at::Tensor& tokens, const at::Tensor& vectors) override;
  TokenOutput output() const { return {encoder().weight(), bias_}; }

  double masked_share_;
  at::Tensor bias_;  // [V]
};

}  // namespace attend
