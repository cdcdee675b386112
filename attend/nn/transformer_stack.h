#pragma once

#include <torch/nn/modules/normalization.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/nn/dropout.h"
#include "attend/nn/feed_forward.h"
#include "attend/nn/learned_queries.h"
#include "attend/nn/mixture_of_experts.h"
#include "attend/nn/multi_head_attention.h"

namespace attend {

struct TransformerStackConfig {
  int64_t layers = 4;
  int64_t depth = 128;               // of the vectors between the layers
  std::vector<HeadGroup> self = {};  // heads that read the sequence itself
  // Where not empty, layer i has the heads i % size of these in place of `self`, as where most
  // layers see a window alone.
  std::vector<std::vector<HeadGroup>> self_in_turn = {};
  std::vector<HeadGroup> cross = {};  // heads that read a source; empty: there is none
  int64_t source_depth = 0;           // 0: as depth
  int64_t feed_forward = 512;         // hidden units of each layer's feed-forward network
  HiddenActivation activation = HiddenActivation::relu;
  bool gated = false;  // of that network, as FeedForward has it; without experts
  // The number of feed-forward networks in each layer, `chosen_experts` of which compute each
  // position (MixtureOfExperts); 0: one network computes all positions.
  int64_t experts = 0;
  int64_t chosen_experts = 2;
  // Where not 0, each layer has so many learned vectors, which read the sequence; positions then
  // read these in place of each other: n m instead of n^2 weights (Lee et al. 2019, eq. 9 and 10).
  // Such a stack reads whole sequences and takes no steps; a watch does not see the two readings,
  // whose weights are no map from positions to positions.
  int64_t inducing_points = 0;
  // true: a sublayer's input is normalised and its output added (Xiong et al. 2020), and the output
  // of the stack is normalised; false: the sum is normalised (Vaswani et al. 2017).
  bool normalise_first = true;
  // false, with normalise_first: the first layer's attention reads the stack's input as it is.
  bool first_norm = true;
  double epsilon = 1e-5;           // that a norm adds to the variance
  int64_t neighbour_kinds = 0;     // as MultiHeadConfig has it
  double dropout = 0.1;            // of what each sublayer adds and of the hidden units
  double attention_dropout = 0.0;  // of the weights
};

// What a source offers to the heads that read it.
struct StackSource {
  at::Tensor vectors = {};  // [B, S, source_depth]; undefined: there is none
  at::Tensor lengths = {};  // [B] int64; undefined: no padding
};

// Keys and values between the steps of a sequence, one state per layer.
struct StackCaches {
  std::vector<MultiHeadState> self;   // of the sequence so far
  std::vector<MultiHeadState> cross;  // of the source; empty: there is none

  // The number of positions so far, which is the position of the next.
  int64_t positions() const { return self[0].queries(); }
  // As MultiHeadState; `same_source`: each row stays with its source.
  void reorder(const at::Tensor& rows, bool same_source);
};

// Layers of attention and feed-forward networks (Vaswani et al. 2017, 3.1): an encoder with scope
// all, a language model with scope causal, a decoder with causal self-attention and a source.
class TransformerStack : public torch::nn::Module {
 public:
  // Error as MultiHeadAttention, where there are no layers, where experts would be gated, and where
  // heads that go by positions or edges would read inducing points.
  explicit TransformerStack(const TransformerStackConfig& config);

  // x [B, T, depth] with lengths [B] (undefined: no padding) -> the same. `neighbours` as
  // MultiHeadAttention has them.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths, const StackSource& source,
                     const Pass& pass, const Neighbours* neighbours = nullptr);

  // The caches before the first position, with the source's keys and values.
  StackCaches start(const StackSource& source, const Pass& pass);

  // The next positions x [B, T, depth] of a sequence, after those in the caches: as forward of the
  // whole sequence where no position sees later ones.
  at::Tensor step(const at::Tensor& x, StackCaches& caches, const Pass& pass);

  int64_t layers() const { return static_cast<int64_t>(layers_.size()); }
  const TransformerStackConfig& config() const { return config_; }

 private:
  struct Layer {
    std::shared_ptr<MultiHeadAttention> self, cross;  // cross null without a source
    std::shared_ptr<LearnedQueries> points;           // that read the sequence; null: none
    std::shared_ptr<FeedForward> feed_forward;        // null with experts
    std::shared_ptr<MixtureOfExperts> experts;        // null without
    // The first is null where the layer reads its input as it is, the second without a source.
    torch::nn::LayerNorm self_norm{nullptr}, cross_norm{nullptr}, feed_forward_norm{nullptr};
  };

  Layer make_layer(const TransformerStackConfig& config, int64_t index);
  // What the positions x of a layer read of each other.
  static at::Tensor read_self(Layer& layer, const at::Tensor& x, const at::Tensor& lengths,
                              const Neighbours* neighbours, const Pass& pass);

  at::Tensor normalised(const at::Tensor& x, const torch::nn::LayerNorm& norm,
                        const Pass& pass) const;

  // x with what `sublayer` makes of it, normalised before or after.
  template <class Sublayer>
  at::Tensor added(const at::Tensor& x, torch::nn::LayerNorm& norm, const Pass& pass,
                   Sublayer sublayer);

  // All layers, their attention by read_self and read_cross(index, input, pass). `present` [B, T]
  // bool; undefined: no padding.
  template <class Self, class Cross>
  at::Tensor through(at::Tensor x, const at::Tensor& present, const Pass& pass, Self read_self,
                     Cross read_cross);

  TransformerStackConfig config_;
  std::vector<Layer> layers_;
  torch::nn::LayerNorm final_norm_{nullptr};  // null where the sums are normalised
};

}  // namespace attend
