#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/decode/packed_stack.h"
#include "attend/models/source_input.h"
#include "attend/models/transformer_config.h"
#include "attend/nn/attention_trace.h"
#include "attend/nn/linear.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/transformer_stack.h"
#include "attend/text/vocabulary.h"

namespace attend {

// Settings of a source encoder. Unlike in a Transformer, its layers by default encode distances by
// a learned bias (Raffel et al. 2020).
struct SourceEncoderConfig : LayersConfig {
  SourceEncoderConfig();

  int64_t recurrent_layers = 0;  // bidirectional layers below self-attention; 0: none
  Cell cell = Cell::lstm;        // cell of these layers
  int64_t layers = 0;  // self-attention layers. With no layers of either kind, vectors do not
                       // interact, as in a bag of words
  // Layers with the parameters of each layer, from 1, such as "1, 1, 1, 4, 4, 4"; empty: all layers
  // have their own.
  std::string shared_layers = {};
  int64_t inducing_points = 0;  // learned vectors per layer through which positions interact; 0:
                                // positions read each other (TransformerStackConfig)
  int64_t embedding_depth = 0;  // depth of the vectors of tokens and positions, which a linear map
                                // brings to `depth`; 0: `depth`, without a map
  bool side_vectors = true;     // adds a learned vector per text to the tokens of pairs
  int64_t convolution = 0;      // width of a NearConvolution; see TransformerStackConfig
  HiddenActivation convolution_activation = HiddenActivation::tanh;
  bool normalise_input = false;  // normalises the input of the layers after adding positions
  // Hidden and unknown tokens have the vector 0. If they have the share m of a source, vectors of
  // the other tokens are multiplied by (1 - token_dropout) / (1 - m) (ESM-2, Lin et al. 2023). 0:
  // neither.
  double token_dropout = 0;
  bool contact_head = false;  // see ContactHead
  ImageInputConfig image;
  int64_t maximum_source_length = 512;

  // TransformerStackConfig::owners by `shared_layers`. Error if the text is not a list of numbers.
  std::vector<int64_t> layer_owners() const;
  // Depth of the vectors of tokens and positions.
  int64_t input_depth() const { return embedding_depth > 0 ? embedding_depth : depth; }

  Settings settings();         // keys model.*
  Settings weight_settings();  // see NetworkConfig::weight_settings()
  Setting sides_setting();     // a key of types that read pairs; defines the weights, too
  // The setting that disables attention, for a network without attention.
  std::string no_weights_reason() const;
  // See NetworkConfig::unused_mechanism_reason().
  std::string unused_mechanism_reason() const;
  std::string not_shared_reason() const;
  // Error as LayersConfig::check if there are layers, and if recurrent layers have an odd depth or
  // embeddings of another depth.
  void check() const;

 private:
  Settings own_settings();
  Setting length_setting();
};

// Logistic regression that predicts from the attention weights of all heads which tokens of a
// source touch, such as residues of a folded protein (Rao et al. 2021). Import sets its weights;
// training of a network leaves them unchanged.
class ContactHead : public torch::nn::Module {
 public:
  ContactHead(int64_t layers, int64_t heads);

  at::Tensor weight;  // [1, layers heads], in the order of layers, then of heads
  at::Tensor bias;    // [1]
};

// Encodes tokens, images or sounds (BERT, Devlin et al. 2019; the Vision Transformer, Dosovitskiy
// et al. 2021). It applies SourceInput, positions, optional bidirectional recurrent layers,
// optional class tokens, an optional norm, an optional map to
// another depth, and an optional TransformerStack. If frames have
// neighbours, as atoms of a molecule do, each frame attends only to itself and its neighbours
// (graph attention), with a learned bias per kind of edge.
class SourceEncoder : public torch::nn::Module {
 public:
  SourceEncoder(const SourceShape& shape, const SourceEncoderConfig& config, int64_t class_tokens);

  // source [B, S] int64 or frames [B, S, F], lengths [B] from 1 -> vectors [B, S, depth] and
  // lengths. Class tokens are the first vectors; they increase S and the lengths. Error as
  // SourceInput and LearnedPositions.
  StackSource forward(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // As PairNetwork::pack(), for networks that can pack no other part. In evaluation, forward() then
  // uses the packed weights.
  bool pack(WeightType weights);

  // Null unless SourceEncoderConfig::contact_head.
  const ContactHead* contact_head() const { return contacts_.get(); }

  // The token vectors [tokens, input_depth()], for sharing.
  const at::Tensor& weight() const { return input_->weight(); }

 private:
  at::Tensor positioned(const at::Tensor& vectors) const;
  // Adds the vector of its text to each token of a pair.
  at::Tensor with_sides(const at::Tensor& vectors, const at::Tensor& source) const;

  SourceShape shape_;
  std::optional<SinusoidOrder> sinusoids_;
  double dropout_, token_dropout_;
  std::shared_ptr<SourceInput> input_;
  std::shared_ptr<LearnedPositions> positions_;      // null unless positions are learned
  std::shared_ptr<BidirectionalEncoder> recurrent_;  // null without recurrent layers
  at::Tensor sides_;                                 // [2, input_depth()]; undefined unless read
  at::Tensor class_token_;                           // [1, n, input_depth()]; undefined: none
  torch::nn::LayerNorm norm_{nullptr};               // null unless the input is normalised
  Linear projection_{nullptr};                       // null without embedding_depth
  std::shared_ptr<TransformerStack> layers_;         // null without layers
  std::shared_ptr<ContactHead> contacts_;            // null without a contact head
  std::shared_ptr<const PackedStack> packed_;        // null until pack(), or if it is not supported
};

// Replaces hidden tokens; it does not occur in texts.
constexpr int64_t mask_token = Vocabulary::bos;

// Factors [B, S, 1] of token vectors, in the options of `like`; see
// SourceEncoderConfig::token_dropout. `share` is that setting.
at::Tensor token_factors(const at::Tensor& source, const at::Tensor& lengths, double share,
                         const at::TensorOptions& like);

// Replaces this share of the tokens by the unknown token, which trains its vector and the absence
// of tokens. Returns frames, and any source without a generator, unchanged. `pair_tokens`:
// PairForm::tokens; 0 for single texts.
at::Tensor drop_words(const at::Tensor& source, double share, const Pass& pass,
                      int64_t pair_tokens = 0);

// The share of each source token in a vector pooled with `weights` [B, S]. The pooling follows
// layers with the self-attention in `trace`. Each layer spreads half of a weight by the mean of its
// heads and keeps the other half, because of its residual connection (attention roll-out, Abnar &
// Zuidema 2020).
at::Tensor rolled_out(at::Tensor weights, const AttentionTrace& trace);

}  // namespace attend
