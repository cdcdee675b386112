#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <vector>

#include "attend/models/source_input.h"
#include "attend/models/transformer_config.h"
#include "attend/nn/attention_trace.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/transformer_stack.h"
#include "attend/steps/packed_stack.h"

namespace attend {

// The settings of a source's encoder. Unlike a Transformer's, its layers by default know distances
// by a learned bias (Raffel et al. 2020).
struct SourceEncoderConfig : LayersConfig {
  SourceEncoderConfig();

  int64_t recurrent_layers = 0;  // bidirectional, below the others; 0: none
  Cell cell = Cell::lstm;        // of those
  int64_t layers = 0;            // of self-attention. Without either kind every vector stays by
                                 // itself, as in a bag
  int64_t inducing_points = 0;   // of each of those, through which positions know each other; 0:
                                 // they read each other (TransformerStackConfig)
  bool normalise_input = false;  // what enters the layers, with its positions
  ImageInputConfig image;
  int64_t maximum_source_length = 512;

  Settings settings();         // keys model.*
  Settings weight_settings();  // those of them that NetworkConfig::weight_settings() has
  // Error as LayersConfig::check, where there are layers, and where recurrent layers have an odd
  // depth.
  void check() const;

 private:
  Setting input_setting();
  Setting length_setting();
};

// Tokens, images or sounds as vectors that know each other (BERT, Devlin et al. 2019; the Vision
// Transformer, Dosovitskiy et al. 2021): SourceInput, positions, perhaps bidirectional recurrent
// layers, perhaps vectors more that belong to no token, class tokens, perhaps a norm, and a
// TransformerStack over them. Where frames tell of neighbours, as the atoms of a molecule do, each
// sees itself and those alone in its layers (graph attention), with a learned bias for each kind of
// edge.
class SourceEncoder : public torch::nn::Module {
 public:
  SourceEncoder(const SourceShape& shape, const SourceEncoderConfig& config, int64_t class_tokens);

  // source [B, S] int64 or frames [B, S, F], lengths [B] from 1 -> vectors [B, S, depth] and
  // lengths; with class tokens, which are the first vectors, both are longer by these. Error as
  // SourceInput and LearnedPositions.
  StackSource forward(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // As PairNetwork::pack() of a network whose other parts have no packed form: forward() then
  // computes layers over sequences that are short enough by what is kept.
  bool pack(WeightType weights);

  // The vectors of tokens, [tokens, depth], to share.
  const at::Tensor& weight() const { return input_->weight(); }

 private:
  at::Tensor positioned(const at::Tensor& vectors) const;

  SourceShape shape_;
  std::optional<SinusoidOrder> sinusoids_;
  double dropout_;
  std::shared_ptr<SourceInput> input_;
  std::shared_ptr<LearnedPositions> positions_;      // null where they are not learned
  std::shared_ptr<BidirectionalEncoder> recurrent_;  // null without recurrent layers
  at::Tensor class_token_;                           // [1, n, depth]; undefined: none
  torch::nn::LayerNorm norm_{nullptr};               // null where the input is not normalised
  std::shared_ptr<TransformerStack> layers_;         // null without layers
  std::shared_ptr<const PackedStack> packed_;        // null until pack(), and where it gives false
};

// Unknown in place of that share of the tokens, so that its vector is trained, and a token's
// absence is. As it is where nothing is drawn, and of frames.
at::Tensor drop_words(const at::Tensor& source, double share, const Pass& pass);

// How much of each source token is in what was pooled with `weights` [B, S] behind the layers whose
// self-attention the trace has: a layer spreads half of a weight by the mean of its heads and keeps
// the other half, as it adds to what it reads (attention roll-out, Abnar & Zuidema 2020).
at::Tensor rolled_out(at::Tensor weights, const AttentionTrace& trace);

}  // namespace attend
