#pragma once

#include <torch/nn/modules/linear.h>

#include <memory>

#include "attend/models/language_model_config.h"
#include "attend/models/pair_network.h"
#include "attend/nn/positioned_embedding.h"
#include "attend/nn/token_loss.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

class PackedDecoder;
class StackSteps;

// Predicts the next token of a text: causal self-attention, by any mechanism of the table, over a
// start token, the source and the target, of which the target is predicted (Radford et al. 2019).
// Without config.start the start token is there where there is no source.
// Source and target share their tokens. A window of a text is a target without an end; its source
// is the text before it, or nothing.
class LanguageModel : public PairNetwork {
 public:
  // Error as LayersConfig::check.
  LanguageModel(const LanguageModelConfig& config, int64_t tokens);

  // Teacher-forced logits [B, T, V] for batch.target. Error where positions are learned and a
  // source and a target together are over config.context tokens long.
  at::Tensor logits(const Batch& batch, const Pass& pass);

  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  // Reads the last half of a source that the context does not hold. Where steps fill the context,
  // half of it is read anew, as a beginning. Their weights: those over the source, the mean of the
  // heads of the last layer; the remainder to 1 is on the other tokens.
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool pack(WeightType weights) override;
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  bool wants_equal_lengths() const override { return true; }
  bool attends() const override { return true; }

 private:
  struct State;

  // Computes the vectors of tokens from the start on: [B, n] -> [B, n, depth].
  at::Tensor vectors_of(const at::Tensor& text, const Pass& pass);
  // How many start tokens precede a source of such lengths.
  at::Tensor starts(const at::Tensor& source_lengths) const;
  // The layers before the first position of so many hypotheses.
  std::unique_ptr<StackSteps> start_layers(int64_t rows, const Pass& pass);
  TokenOutput output() const;

  int64_t context_;
  int64_t negatives_;
  bool start_;
  double dropout_;
  std::shared_ptr<PositionedEmbedding> embedding_;
  std::shared_ptr<TransformerStack> stack_;
  torch::nn::Linear output_{nullptr};            // null where tied
  at::Tensor output_bias_;                       // [V]; undefined: none beside output_
  std::shared_ptr<const PackedDecoder> packed_;  // null until pack(), and where there is no such
};

}  // namespace attend
