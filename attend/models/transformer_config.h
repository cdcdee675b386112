#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/settings.h"
#include "attend/models/mechanism_settings.h"
#include "attend/models/source_input.h"
#include "attend/models/tied.h"
#include "attend/models/token_tables.h"
#include "attend/nn/positioned_embedding.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

// The name in LayersConfig::layer of layers that read by attention.
constexpr std::string_view attention_layer = "attention";

// Input of a sublayer: the sum of the stack's input and of all earlier outputs, or their weighted
// mean (DepthAttention).
enum class Residual { sum, attention };
inline EnumNames names_of(Residual) { return {"sum", "attention"}; }

// Settings that all kinds of Transformers share.
struct LayersConfig {
  MechanismSettings self = {.mechanism = "self"};  // self-attention
  // attention_layer or rows of recurrence_table() that layers use in turn, separated by commas
  std::string layer = std::string(attention_layer);
  // Scopes that layers use in turn, such as "all; window:64; window:64"; empty: scope of `self`.
  std::string scopes = {};
  Positions positions = Positions::sinusoidal;
  std::string rotary_bases = "10000";  // bases of rotate() (nn/positions.h) that layers use in turn
  std::string rotary_scaling = "none";  // parse_rotary_scaling() of layers in turn
  double rotary_share = 1;              // see Rotation
  RotaryPairs rotary_pairs = RotaryPairs::adjacent;
  int64_t depth = 128;
  int64_t feed_forward = 256;
  int64_t heads = 4;
  int64_t head_depth = 0;                        // 0: depth / heads
  int64_t key_heads = 0;                         // 0: heads
  int64_t latent_depth = 0, latent_rotary = -1;  // see settings(); for mechanism latent
  int64_t sparse_block = 64, sparse_blocks = 16, sparse_window = 512;
  int64_t memory_segment = 64;
  int64_t mixed_queries = 6, mixed_keys = 11, mixed_heads = 2;
  int64_t index_keys = 256, index_heads = 4, index_depth = 32;
  HiddenActivation activation = HiddenActivation::relu;
  bool gated = false;          // see FeedForward
  int64_t experts = 0;         // feed-forward networks per layer; 0: one for all positions
  int64_t chosen_experts = 2;  // experts per position
  bool normalise_first = true;
  bool first_norm = true;  // see TransformerStackConfig
  Residual residual = Residual::sum;
  int64_t residual_block = 1;  // TransformerStackConfig::depth_block, for Residual::attention
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;                           // epsilon of the layers' norms
  bool fixed_biases = false;                       // see TransformerStackConfig
  bool shared_bias = false;                        // see TransformerStackConfig
  DistanceSource distances = DistanceSource::own;  // see DistanceSource
  bool normalise_distances = false;
  double dropout = 0.1;
  double attention_dropout = 0;

  Settings settings();         // keys model.*
  Settings weight_settings();  // see NetworkConfig::weight_settings()

  // Whether a layer, from 0, and whether all layers read the sequence by attention.
  bool attends(int64_t index) const;
  bool attends_everywhere() const { return recurrences().empty(); }
  // See NetworkConfig::unused_mechanism_reason().
  std::string unused_mechanism_reason() const;

  // Settings of a stack of such layers. `causal`: positions do not attend to later ones. `source`:
  // cross-attention to a source of the same depth, if not null.
  TransformerStackConfig stack(int64_t layers, bool causal,
                               const MechanismSettings* source = nullptr) const;

  // See NetworkConfig::not_shared_reason().
  std::string not_shared_reason() const;

  // Error if heads do not divide the depth, if a layer or the mechanism is not supported, or if its
  // choices contradict each other.
  void check() const;
  // Error if layers that read both ways have an odd number of heads.
  void check_both_ways() const;

 private:
  Settings norm_settings();       // parts of weight_settings()
  Settings mechanism_settings();  // sizes of some mechanisms
  // The recurrences of the layers, in turn, null for attention; empty if all layers attend.
  std::vector<const RecurrenceRow*> recurrences() const;
  int64_t depth_per_head() const { return head_depth > 0 ? head_depth : depth / heads; }
  bool is_latent() const;
  bool has_branches() const;
  void check_latent() const;
  void check_heads() const;
  void check_residual() const;
  void check_distances() const;
  // Heads of the layers, in turn; `causal` as in stack().
  std::vector<HeadGroup> heads_in_turn(bool causal) const;
  void check_turns() const;
  // Scalings of the layers, in turn.
  std::vector<RotaryScaling> scalings() const;
  // Whether queries and keys are rotated.
  bool rotates() const;
  void check_rotation() const;
};

// The encoder-decoder of Vaswani et al. 2017.
struct TransformerConfig : LayersConfig, TokenTables {
  MechanismSettings source = {.mechanism = "cross"};  // cross-attention of the decoder
  int64_t encoder_layers = 4;
  int64_t decoder_layers = 4;
  ImageInputConfig image;
  Tied tied = Tied::target;
  bool scale_output = false;     // by 1 / sqrt(depth)
  bool normalise_input = false;  // layer norm of the sum of token and position vectors
  bool separate_positions = false;
  int64_t maximum_source_length = 256;
  int64_t maximum_target_length = 0;  // see Transformer

  // Form of an embedding with up to `positions` learned positions.
  EmbeddingForm embedding(int64_t positions) const;
  bool wants_joint_vocabulary() const { return shares_inputs(tied); }
  std::string not_shared_reason() const;

  Settings settings();
  Settings weight_settings();
  void check() const;

 private:
  Settings length_settings();
  Settings input_settings();
};

}  // namespace attend
