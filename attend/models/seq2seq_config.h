#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/settings.h"
#include "attend/models/mechanism_settings.h"
#include "attend/models/source_input.h"
#include "attend/models/tied.h"
#include "attend/nn/learned_attention.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

// Annotations of a source: recurrent layers, or only token or frame vectors with positions.
enum class Annotations { recurrent, none };
inline EnumNames names_of(Annotations) { return {"recurrent", "none"}; }

// Possible parts of a recurrent decoder's query.
enum class QueryVector { previous_state, state, token, context, extra };
inline EnumNames names_of(QueryVector) {
  return {"previous_state", "state", "token", "context", "extra"};
}

struct Seq2SeqConfig : MechanismSettings {
  // An additional score: one fixed context instead of attention.
  static constexpr std::string_view no_attention = "none";

  Seq2SeqConfig() : MechanismSettings{.mechanism = "bahdanau"} {}

  Cell cell = Cell::gru;
  Annotations encoder = Annotations::recurrent;
  std::string query = {};  // names of QueryVector joined by +; empty: the mechanism's own
  int64_t embedding = 128;
  int64_t hidden = 256;  // depth of the decoder state and of the annotations
  int64_t attention_depth = 256;
  int64_t encoder_layers = 1;
  int64_t decoder_layers = 1;
  bool residual = false;    // recurrent layers from the second on add their input to their output
  int64_t self_layers = 0;  // Transformer layers over the annotations
  int64_t heads = 4;        // heads of these layers
  bool input_feeding = false;
  bool intra_decoder = false;
  // The decoder starts from the last state of an encoder that only reads forward, and tokens are
  // predicted from the decoder state (Sutskever et al. 2014).
  bool plain = false;
  bool copy = false;
  double coverage_weight = 0;
  Tied tied = Tied::none;
  ImageInputConfig image;
  double dropout = 0.1;
  double entropy_weight = 0;  // weight of the entropy of hard attention
  int64_t maximum_source_length = 512;

  Settings settings();         // keys model.*
  Settings weight_settings();  // see NetworkConfig::weight_settings()

  bool attends() const { return score != no_attention; }
  // See NetworkConfig::unused_mechanism_reason().
  std::string unused_mechanism_reason() const { return attends() ? "" : "model.score = none"; }

  // The query's parts, in order. Error if one is unknown or repeated.
  std::vector<QueryVector> query_parts() const;

  // Depth of a source token or frame before the encoder; without an encoder, depth of an
  // annotation.
  int64_t source_depth() const { return encoder == Annotations::recurrent ? embedding : hidden; }

  // Whether sources and targets must share one vocabulary.
  bool wants_joint_vocabulary() const { return copy || shares_inputs(tied); }

  // Settings of the stack of self_layers.
  TransformerStackConfig self_stack() const;

  // Depths of the query and the annotations.
  AttentionSizes attention_sizes() const;

  // Error, with the reason and an alternative, if the settings describe no valid model: a mechanism
  // that a recurrent decoder cannot use, contradictory choices, or depths that cannot be compared.
  void check() const;
};

struct QueryPart {
  std::string_view meaning;
  StepVector vector;
};

// Rows in the order of QueryVector.
const std::vector<QueryPart>& query_part_table();

}  // namespace attend
