#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/nn/depth_attention.h"
#include "attend/nn/dropout.h"
#include "attend/nn/feed_forward.h"
#include "attend/nn/learned_queries.h"
#include "attend/nn/mixture_of_experts.h"
#include "attend/nn/multi_head_attention.h"
#include "attend/nn/near_convolution.h"
#include "attend/nn/norm.h"
#include "attend/nn/recurrence_layer.h"

namespace attend {

struct TransformerStackConfig {
  int64_t layers = 4;
  int64_t depth = 128;               // depth of the vectors between the layers
  int64_t head_depth = 0;            // depth of the heads: see MultiHeadConfig
  std::vector<HeadGroup> self = {};  // heads that read the sequence itself
  // If not empty, layer i uses the heads i % size of these instead of `self`. For example, most
  // layers may attend only to a window.
  std::vector<std::vector<HeadGroup>> self_in_turn = {};
  // If not empty, layer i reads the sequence by the linear recurrence i % size of these, with as
  // many heads as `self`; null: by attention.
  std::vector<const RecurrenceRow*> recurrences = {};
  bool both_ways = false;  // half of the heads of a recurrence read from the end
  // If not empty, layer i has the parameters of layer owners[i], which is i or an earlier layer
  // with parameters of its own (ALBERT, Lan et al. 2020).
  std::vector<int64_t> owners = {};
  // Whether all layers use the bias of the first layer with attention, which has its parameters.
  bool shared_bias = false;
  // Vectors of distances that the biases of `self` read; see MultiHeadConfig.
  DistanceSource distances = DistanceSource::own;
  bool normalise_distances = false;  // see DistanceVectorsConfig; not if own
  // Width of a NearConvolution that is added to the output of the first layer and reads its input;
  // 0: none. Such a stack supports whole sequences only, not steps.
  int64_t convolution = 0;
  HiddenActivation convolution_activation = HiddenActivation::tanh;
  std::vector<HeadGroup> cross = {};  // heads that read a source; empty: no source
  int64_t source_depth = 0;           // 0: depth
  int64_t feed_forward = 512;         // hidden units of each layer's feed-forward network
  HiddenActivation activation = HiddenActivation::relu;
  bool gated = false;  // see FeedForward; not with experts
  // Number of feed-forward networks per layer (MixtureOfExperts); each position is computed by
  // `chosen_experts` of them. 0: one network for all positions.
  int64_t experts = 0;
  int64_t chosen_experts = 2;
  // Number of learned vectors per layer that read the sequence; positions then read these instead
  // of each other: n m instead of n^2 weights (Lee et al. 2019, eq. 9 and 10). 0: none. Such a
  // stack supports whole sequences only, not steps. A watch does not see the two reads, because
  // their weights do not map positions to positions.
  int64_t inducing_points = 0;
  // true: the input of a sublayer is normalised, its output is added (Xiong et al. 2020), and the
  // output of the stack is normalised; false: the sum is normalised (Vaswani et al. 2017).
  bool normalise_first = true;
  // If false, with normalise_first, the first layer's attention reads the stack's input without a
  // norm.
  bool first_norm = true;
  // If above 0, sublayers attend to the earlier outputs instead of their sum, in blocks of this
  // many sublayers: DepthAttention. Requires normalise_first.
  int64_t depth_block = 0;
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;           // added to the variance in a norm
  bool fixed_biases = false;       // training leaves the biases of maps and norms unchanged
  double output_scale = 1;         // factor of the stack's output, with normalise_first
  int64_t neighbour_kinds = 0;     // see MultiHeadConfig
  double dropout = 0.1;            // applies to each sublayer's output and to the hidden units
  double attention_dropout = 0.0;  // applies to the weights

  // The layer with the parameters of that layer, both from 0.
  int64_t owner(int64_t layer) const {
    return owners.empty() ? layer : owners[static_cast<size_t>(layer)];
  }
  // The heads of that layer, from 0, that read the sequence itself.
  const std::vector<HeadGroup>& self_of(int64_t layer) const {
    return self_in_turn.empty() ? self
                                : self_in_turn[static_cast<size_t>(layer) % self_in_turn.size()];
  }
  // The recurrence of that layer, from 0; null: it attends.
  const RecurrenceRow* recurrence(int64_t layer) const {
    return recurrences.empty() ? nullptr
                               : recurrences[static_cast<size_t>(layer) % recurrences.size()];
  }
};

// The source for the heads that read it.
struct StackSource {
  at::Tensor vectors = {};  // [B, S, source_depth]; undefined: no source
  at::Tensor lengths = {};  // [B] int64; undefined: no padding
};

// State between the steps of a sequence, one per layer.
struct StackCaches {
  std::vector<MultiHeadState> self;  // the sequence so far; empty in layers with a recurrence
  std::vector<RecurrenceLayerState> recurrences;  // empty in layers with attention
  std::vector<MultiHeadState> cross;              // states of the source; empty: no source
  int64_t positions = 0;  // number of positions so far, which is the position of the next

  // See MultiHeadState::reorder; `same_source`: each row keeps its source.
  void reorder(const at::Tensor& rows, bool same_source);
};

// Layers of attention and feed-forward networks (Vaswani et al. 2017, 3.1): an encoder with scope
// all, a language model with scope causal, or a decoder with causal self-attention and a source.
class TransformerStack : public torch::nn::Module {
 public:
  // Error as MultiHeadAttention and RecurrenceLayer, without layers, if experts are combined with
  // gating, or if owners are not one earlier layer per layer with heads of the same kind. Inducing
  // points do not support heads that depend on positions or edges, another norm than layer, or a
  // head depth. Recurrences support neither inducing points nor edges.
  explicit TransformerStack(const TransformerStackConfig& config);

  // x [B, T, depth] with lengths [B] (undefined: no padding) -> the same shape. `neighbours`: see
  // MultiHeadAttention.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths, const StackSource& source,
                     const Pass& pass, const Neighbours* neighbours = nullptr);

  // Caches before the first position, with the keys and values of the source.
  StackCaches start(const StackSource& source, const Pass& pass);

  // Computes the next positions x [B, T, depth] of a sequence, after the cached positions. Results
  // equal forward over the whole sequence if no position attends to later ones.
  at::Tensor step(const at::Tensor& x, StackCaches& caches, const Pass& pass);

  int64_t layers() const { return static_cast<int64_t>(layers_.size()); }
  // Whether a layer, from 0, reads the sequence by attention over all keys, so that steps have
  // weights.
  bool attends(int64_t layer) const {
    const Layer& one = layers_[static_cast<size_t>(layer)];
    return one.self != nullptr && one.self->keeps_keys();
  }
  const TransformerStackConfig& config() const { return config_; }

 private:
  struct Layer {
    std::shared_ptr<MultiHeadAttention> self, cross;  // null with a recurrence, without a source
    std::shared_ptr<RecurrenceLayer> recurrence;      // null with attention
    std::shared_ptr<LearnedQueries> points;           // inducing points; may be null
    std::shared_ptr<FeedForward> feed_forward;        // null with experts
    std::shared_ptr<MixtureOfExperts> experts;        // null without experts
    // self_norm is null if the layer reads its input without a norm; cross_norm without a source.
    std::shared_ptr<Norm> self_norm, cross_norm, feed_forward_norm;
  };

  void make_distances(const TransformerStackConfig& config);
  Layer make_layer(const TransformerStackConfig& config, int64_t index);
  void make_self(const TransformerStackConfig& config, int64_t index, Layer& layer);
  void make_points(const TransformerStackConfig& config, int64_t index,
                   const std::vector<HeadGroup>& self, Layer& layer);
  // Both undefined: no padding.
  struct Padding {
    at::Tensor lengths;  // [B]
    at::Tensor present;  // [B, T] bool; undefined, too, if no layer asks for it
  };
  // Reads the sequence by attention, directly or through inducing points, or by a recurrence.
  static at::Tensor read_self(Layer& layer, const at::Tensor& x, const Padding& padding,
                              const Neighbours* neighbours, const Pass& pass);

  // x + sublayer, normalised before or after the sum.
  template <class Sublayer>
  at::Tensor added(const at::Tensor& x, const Norm* norm, const Pass& pass, Sublayer sublayer);

  // The same, reading by depth_attention_; adds the sublayer's output to `outputs`.
  template <class Sublayer>
  void added(DepthAttention::Outputs& outputs, const at::Tensor& x, const Norm* norm,
             const Pass& pass, Sublayer sublayer);

  // Output of a layer's feed-forward network or experts.
  static at::Tensor fed_forward(Layer& layer, const at::Tensor& x, const at::Tensor& present,
                                const Pass& pass);

  // Applies all layers, with attention computed by read_self and read_cross(index, input, pass).
  // `present` [B, T] bool; undefined: no padding.
  template <class Self, class Cross>
  at::Tensor through(at::Tensor x, const at::Tensor& present, const Pass& pass, Self read_self,
                     Cross read_cross);
  template <class Self, class Cross>
  at::Tensor through_depth(const at::Tensor& x, const at::Tensor& present, const Pass& pass,
                           Self read_self, Cross read_cross);

  TransformerStackConfig config_;
  std::shared_ptr<DistanceVectors> distances_;    // null if each layer has its own
  std::shared_ptr<NearConvolution> convolution_;  // null without a convolution
  std::vector<Layer> layers_;
  std::shared_ptr<Norm> final_norm_;                 // null unless normalise_first
  std::shared_ptr<DepthAttention> depth_attention_;  // null without a depth block
};

}  // namespace attend
