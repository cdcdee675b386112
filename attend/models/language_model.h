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

// Predicts the next token of a text by causal self-attention, with any mechanism of the table
// (Radford et al. 2019). The input is a start token, the source and the target; only target tokens
// are predicted. Without config.start, only empty sources have a start token. Source and target
// share their tokens. A window of a text is a target without an end; its source is the text before
// it, or empty.
class LanguageModel : public PairNetwork {
 public:
  // Error as LayersConfig::check.
  LanguageModel(const LanguageModelConfig& config, int64_t tokens);

  // Teacher-forced logits [B, T, V] for batch.target. Error if positions are learned and source and
  // target together exceed config.context tokens.
  at::Tensor logits(const Batch& batch, const Pass& pass);

  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  // A source that exceeds the context is reduced to its end, half a context long. When steps fill
  // the context, its last half is read again as a new beginning. Weights of a step: the mean over
  // the heads of the last layer, over the source; the remainder to 1 is on other tokens. None if
  // the last layer reads by a recurrence.
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool pack(WeightType weights) override;
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  bool wants_equal_lengths() const override { return true; }
  bool attends() const override { return stack_->attends(stack_->layers() - 1); }

 private:
  struct State;

  // Vectors of tokens, from the start token on: [B, n] -> [B, n, depth].
  at::Tensor vectors_of(const at::Tensor& text, const Pass& pass);
  // Number of start tokens before sources of these lengths.
  at::Tensor starts(const at::Tensor& source_lengths) const;
  // Layer states before the first position, for `rows` hypotheses.
  std::unique_ptr<StackSteps> start_layers(int64_t rows, const Pass& pass);
  TokenOutput output() const;

  int64_t context_;
  int64_t negatives_;
  bool start_;
  double dropout_;
  std::shared_ptr<PositionedEmbedding> embedding_;
  std::shared_ptr<TransformerStack> stack_;
  torch::nn::Linear output_{nullptr};            // null if tied
  at::Tensor output_bias_;                       // [V]; undefined unless tied with a bias
  bool trains_bias_ = true;                      // whether the output's bias is trained
  std::shared_ptr<const PackedDecoder> packed_;  // null until pack(), or if it is not supported
};

}  // namespace attend
