#pragma once

#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

#include "attend/models/pair_network.h"
#include "attend/models/source_encoder.h"
#include "attend/models/transformer_config.h"
#include "attend/nn/positioned_embedding.h"
#include "attend/nn/token_loss.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

class PackedDecoder;
class PackedStack;
class SharedSequence;

// The Transformer of Vaswani et al. 2017 with any mechanism of the table for self-attention and
// cross-attention. Sources of frames pass a linear map (Dosovitskiy et al. 2021, eq. 1). With
// learned positions, answers have at most model.maximum_target_length tokens, or, if that is 0,
// 3 * maximum_source_length + 10.
class Transformer : public PairNetwork {
 public:
  // Error as TransformerConfig::check and SourceInput, and if model.tied is all but the
  // vocabularies differ.
  Transformer(const TransformerConfig& config, const SourceShape& source, int64_t target_tokens);

  // Teacher-forced logits [B, T, V] for batch.target.
  at::Tensor logits(const Batch& batch, const Pass& pass);

  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  // Weights of a step: the weights over the source, mean over the heads of the last layer.
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  // The encoder may be on another device than the rest. Attention belongs to the layers.
  void place(const Devices& devices) override;
  bool pack(WeightType weights) override;
  bool pads_exactly() const override;
  bool attends() const override { return true; }
  // The start token takes a position.
  int64_t maximum_answer_length() const override { return target_embedding_->positions() - 1; }

 private:
  struct State;
  struct PackedState;

  StackSource encode(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);
  // [B, T, depth] for the positions of `target` on this process.
  at::Tensor decode(const Batch& batch, const SharedSequence& target, const Pass& pass);
  TokenOutput output() const;

  double dropout_;
  at::Device encoder_device_ = at::kCPU;
  std::shared_ptr<SourceEncoder> frames_;  // replaces source_embedding_ and encoder_ for frames;
                                           // otherwise null
  std::shared_ptr<PositionedEmbedding> source_embedding_, target_embedding_;  // the same object if
                                                                              // tied is all
  std::shared_ptr<TransformerStack> encoder_, decoder_;
  torch::nn::Linear output_{nullptr};  // null if tied
  at::Tensor output_bias_;             // [V]; undefined unless tied with a bias
  bool trains_bias_ = true;            // whether the output's bias is trained
  // Null until pack(), or if not supported.
  std::shared_ptr<const PackedStack> packed_encoder_;
  std::shared_ptr<const PackedDecoder> packed_decoder_;
};

}  // namespace attend
