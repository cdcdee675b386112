#pragma once

#include <memory>

#include "attend/models/pair_network.h"
#include "attend/models/source_encoder.h"
#include "attend/nn/feed_forward.h"
#include "attend/nn/linear.h"

namespace attend {

// A network whose answer has one token for each of its source, at the same place: a SourceEncoder,
// perhaps with a class token, and what a type reads off the vector of each token.
class TokenwiseNetwork : public PairNetwork {
 public:
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  // Weights of its steps: those of the token's own vector, the mean of the heads of the last layer.
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool attends() const override { return attends_; }

 protected:
  // What stands before and behind the layers.
  struct Parts {
    bool class_token = false;
    bool output_layer = false;  // of the model's activation, and a norm, below the output
  };
  // Error as SourceEncoderConfig::check, and on frames, which no type here reads.
  TokenwiseNetwork(const SourceEncoderConfig& config, const SourceShape& source, Parts parts);

  // [B, S, depth] of the tokens, without that of the class token.
  at::Tensor vectors(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);
  // What the output reads of vectors [.., depth].
  at::Tensor read_off(const at::Tensor& vectors, const Pass& pass);
  const SourceEncoder& encoder() const { return *encoder_; }

  // What the encoder reads of a source that is to be answered.
  virtual at::Tensor as_asked(const at::Tensor& source) const { return source; }
  // The log probabilities [N, V] of what is answered to tokens [N] with vectors [N, depth].
  virtual at::Tensor answered(const at::Tensor& tokens, const at::Tensor& vectors) = 0;

 private:
  struct State;

  bool attends_;
  int64_t before_source_;  // vectors
  HiddenActivation activation_;
  std::shared_ptr<SourceEncoder> encoder_;
  Linear layer_{nullptr};  // null without, as its norm
  torch::nn::LayerNorm layer_norm_{nullptr};
};

}  // namespace attend
