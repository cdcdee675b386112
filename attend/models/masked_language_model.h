#pragma once

#include "attend/data/vocabulary.h"
#include "attend/models/source_encoder.h"
#include "attend/models/tokenwise_network.h"
#include "attend/nn/token_loss.h"

namespace attend {

// A source encoder of some layers that learns from texts without labels.
struct MaskedLanguageModelConfig : SourceEncoderConfig {
  double masked_share = 0.15;
  // A vector more that the layers read, whose weights begin those of a Classifier with pooling
  // `class`; without it where each text begins with a token that stands for it.
  bool class_token = true;
  // Between the vectors and the output, a layer of the same activation and a norm (BERT's).
  bool output_layer = false;

  MaskedLanguageModelConfig();

  Settings settings();  // keys model.*
  void check() const;   // Error as SourceEncoderConfig, and without layers
};

// The input of a masked language model, [B, S], and its targets: the true token where one is to be
// predicted, elsewhere Vocabulary::padding.
struct MaskedTokens {
  at::Tensor shown, asked;
};

// In place of a token that is hidden; no text holds it.
constexpr int64_t mask_token = Vocabulary::bos;

// Chooses the rounded share of the known tokens of each row of source [B, S] with lengths [B], at
// least one where there is any: an unknown one is no answer. 80 % of these are hidden, 10 % become
// another token of the vocabulary and 10 % stay as they are (Devlin et al. 2019, 3.1 and A.2).
MaskedTokens mask_tokens(const at::Tensor& source, const at::Tensor& lengths, double share,
                         int64_t tokens, const at::Generator& generator);

// How many of so many known tokens of a row mask_tokens() chooses.
int64_t masked_tokens(int64_t known, double share);

// Chooses as mask_tokens() does, each row by numbers that depend on its tokens only: neither on its
// place nor on the rows next to it.
MaskedTokens mask_tokens_by_content(const at::Tensor& source, const at::Tensor& lengths,
                                    double share, int64_t tokens);

// The encoder of a classifier (BERT, Devlin et al. 2019), which guesses tokens that are hidden
// from it; weights of the same names begin a Classifier with pooling `class`.
//
// A network from pairs answers; this one gives its source, in which what the vocabulary lacks is
// filled in, and then EOS, for certain.
class MaskedLanguageModel : public TokenwiseNetwork {
 public:
  // Error as MaskedLanguageModelConfig::check and on frames.
  MaskedLanguageModel(const MaskedLanguageModelConfig& config, const SourceShape& source);

  // Logits [B, S, V] at every token of source [B, S].
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // The loss of batch.source: the mean over the chosen tokens, times the number of tokens of
  // batch.target. Without a generator, tokens are chosen by the content of each row, and the loss
  // is the sum over the rows of the mean of a row times its number of tokens: a sum over batches
  // does then not depend on how rows are put into batches.
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
