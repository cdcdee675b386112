#pragma once

#include <cstdint>
#include <string>

#include "attend/base/settings.h"
#include "attend/models/mechanism_settings.h"
#include "attend/models/source_input.h"
#include "attend/models/tied.h"
#include "attend/nn/positioned_embedding.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

// Keys model.output_bias and model.scale_embedding.
Settings embedding_settings(bool& output_bias, bool& scale_embedding);

// What Transformers of every shape are told.
struct LayersConfig {
  MechanismSettings self = {.mechanism = "self"};  // how a sequence reads itself
  // Scopes that the layers have in turn, such as "all; window:64; window:64"; empty: self's.
  std::string scopes = {};
  Positions positions = Positions::sinusoidal;
  std::string rotary_bases = "10000";  // of rotate() of nn/positions.h, of the layers in turn
  int64_t depth = 128;
  int64_t feed_forward = 256;
  int64_t heads = 4;
  int64_t key_heads = 0;  // 0: as heads
  HiddenActivation activation = HiddenActivation::relu;
  bool gated = false;   // as FeedForward has it
  int64_t experts = 0;  // feed-forward networks in each layer; 0: one, which all positions take
  int64_t chosen_experts = 2;  // of them each position takes
  bool normalise_first = true;
  bool first_norm = true;  // as TransformerStackConfig
  double epsilon = 1e-5;   // of the layers' norms
  double dropout = 0.1;
  double attention_dropout = 0;

  Settings settings();         // keys model.*
  Settings weight_settings();  // those of them that NetworkConfig::weight_settings() has

  // A stack of these; `causal`: no position sees later ones. `source`, if any, is how a source of
  // the same depth is read.
  TransformerStackConfig stack(int64_t layers, bool causal,
                               const MechanismSettings* source = nullptr) const;

  // Answers as NetworkConfig::why_not_shared() does.
  std::string why_not_shared() const;

  // Error when heads do not divide the depth, when the mechanism cannot be computed that way or
  // when its choices do not go together.
  void check() const;

 private:
  // Of the layers in turn; `causal` as stack().
  std::vector<HeadGroup> heads_in_turn(bool causal) const;
  void check_turns() const;
};

// The encoder-decoder of Vaswani et al. 2017.
struct TransformerConfig : LayersConfig {
  MechanismSettings source = {.mechanism = "cross"};  // how the decoder reads the source
  int64_t encoder_layers = 4;
  int64_t decoder_layers = 4;
  ImageInputConfig image;
  Tied tied = Tied::target;
  bool output_bias = false;     // of each token, where the output shares an embedding
  bool scale_embedding = true;  // by sqrt(depth)
  int64_t maximum_source_length = 256;

  bool wants_joint_vocabulary() const { return tied == Tied::all; }
  std::string why_not_shared() const;

  Settings settings();
  Settings weight_settings();
  void check() const;

 private:
  Setting length_setting();
};

}  // namespace attend
