#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/attention_choices.h"
#include "attend/nn/rotation.h"

namespace attend {

// Relation between the queries and the keys of a mechanism.
enum class Relation {
  apart,    // the keys are separate: a source, a memory, a set
  same,     // both are positions of one sequence or image
  earlier,  // the keys are earlier states of the queries' own layer
  learned,  // the queries are parameters
};

// Module for the part of a mechanism that its choices do not cover.
enum class ModuleKind {
  none,
  multi_head,
  rotation,
  partial_rotation,
  yarn_rotation,
  llama3_rotation,
  sinusoids,
  learned_positions,
  blocks,
  length_projection,
  convolution,
  intra_decoder,
  output_gate,  // HeadGroup::gated
  difference,   // HeadGroup::differential
  latent,       // HeadGroup::latent_depth
  branches,     // HeadGroup::branches
  indexer,      // HeadGroup::indexer
  selection,    // HeadGroup::selective
  depth,        // DepthAttention
  memory,       // HeadGroup::memory_segment
  score_mix,    // HeadGroup::mix
  other,        // anything else
};

// Part of the operator that a mechanism changes. docs/mechanisms.md has this order.
enum class Change { score, scope, bias, normaliser, inputs, module };

// One published mechanism: four choices, and the origin of queries, keys and values. Rows are only
// data; the same code runs all rows.
struct Mechanism {
  std::string_view name;
  std::string_view title;
  std::string_view source;
  int year = 0;  // year of the publication
  Change change = Change::score;
  std::string_view parent = {};   // row that this row changes; empty: the root
  std::string_view used_by = {};  // released models, joined by commas
  // The formula of w_ij in c_i = sum_j w_ij v_j, or the part that the row adds.
  std::string_view formula;
  std::string_view queries;  // their origin
  std::string_view memory;   // origin of the keys and values
  Relation relation = Relation::apart;
  // The numbers in it, such as the reach of a window, are examples; a model sets its own.
  AttentionChoices choices = {};
  // The scope with numbers that suit a sentence; empty: the scope of `choices`.
  std::string_view short_scope = {};
  // Inputs of a recurrent decoder's query, in the syntax of model.query.
  std::string_view decoder_query = "previous_state";
  // Cost for n queries and m keys of depth d.
  std::string_view time = "n m d";
  std::string_view space = "(n + m) d";  // in training, in addition to the inputs
  std::string_view carries = "nothing";  // state from one query to the next
  std::string_view cache = "2 d";        // numbers per token and head that decoding keeps
  std::string_view paths = "fused, composed";
  // Module for the part that the four choices do not cover, in words; empty if there is none.
  std::string_view module = {};
  ModuleKind module_kind = ModuleKind::none;
  bool rotates = false;                       // queries and keys are rotated by their positions
  RotaryRule rotary_rule = RotaryRule::none;  // rule that a model must give numbers for
  // Why a recurrent decoder cannot use the row, and an alternative; empty if it can.
  std::string_view refusal = {};
};

// All mechanisms, in the order of the documentation.
const std::vector<Mechanism>& mechanism_table();

// The row with that name. Error otherwise; the message suggests the nearest name.
const Mechanism& mechanism(std::string_view name);

}  // namespace attend
