#pragma once

#include <memory>

#include "attend/models/pair_network.h"
#include "attend/models/source_encoder.h"
#include "attend/nn/feed_forward.h"
#include "attend/nn/linear.h"

namespace attend {

// A network that reads its answers off the vector of each source token. It consists of a
// SourceEncoder with an optional class token, and an optional layer before the output.
class EncoderNetwork : public PairNetwork {
 public:
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  bool pack(WeightType weights) override { return encoder_->pack(weights); }
  bool packs_objective() const override { return true; }
  const ContactHead* contact_head() const override { return encoder_->contact_head(); }

 protected:
  // Optional parts before and after the layers.
  struct Parts {
    bool class_token = false;
    bool output_layer = false;  // a layer with the model's activation, before the output
    bool output_norm = true;    // a norm after this layer
    int64_t output_depth = 0;   // depth of this layer's output; 0: the encoder's
  };
  // Error as SourceEncoderConfig::check, and for frames, which are not supported.
  EncoderNetwork(const SourceEncoderConfig& config, const SourceShape& source, Parts parts);

  // Token vectors [B, S, depth], without the class token.
  at::Tensor vectors(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);
  // Input of the output, from vectors [.., depth].
  at::Tensor read_off(const at::Tensor& vectors, const Pass& pass);
  const SourceEncoder& encoder() const { return *encoder_; }
  int64_t before_source() const { return before_source_; }  // number of vectors before the source

 private:
  int64_t before_source_;
  HiddenActivation activation_;
  std::shared_ptr<SourceEncoder> encoder_;
  Linear layer_{nullptr};  // null without an output layer, as layer_norm_
  torch::nn::LayerNorm layer_norm_{nullptr};
};

// A network that answers one token per source token, at the same position. The type defines the
// readout of each token's vector.
class TokenwiseNetwork : public EncoderNetwork {
 public:
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  // Weights of a step: the weights of the token's own vector, mean over the heads of the last
  // layer.
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool attends() const override { return attends_; }

 protected:
  // Errors as EncoderNetwork.
  TokenwiseNetwork(const SourceEncoderConfig& config, const SourceShape& source, Parts parts);

  // The encoder input for a source to be answered.
  virtual at::Tensor as_asked(const at::Tensor& source) const { return source; }
  // Log probabilities [N, V] of the answers to tokens [N] with vectors [N, depth].
  virtual at::Tensor answered(const at::Tensor& tokens, const at::Tensor& vectors) = 0;

 private:
  struct State;

  bool attends_;
};

}  // namespace attend
