#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/attention_choices.h"

namespace attend {

// How the queries of a mechanism relate to its keys.
enum class Relation {
  apart,    // the keys come from elsewhere: a source, a memory, a set
  same,     // both are the positions of one sequence or image
  earlier,  // the keys are what the queries' own layer was before
  learned,  // the queries are parameters
};

// What runs the part of a mechanism that its choices cannot say.
enum class ModuleKind {
  none,
  multi_head,
  rotation,
  sinusoids,
  learned_positions,
  blocks,
  length_projection,
  convolution,
  intra_decoder,
  other,  // of which nothing is asked
};

// One mechanism of the field: four choices, and where queries, keys and values come from. Data
// only: what runs a row is the same for all.
struct Mechanism {
  std::string_view name;
  std::string_view title;
  std::string_view source;
  // What c_i = sum_j w_ij v_j is with these choices, or what the row adds to that.
  std::string_view formula;
  std::string_view queries;  // where they come from
  std::string_view memory;   // where keys and values come from
  Relation relation = Relation::apart;
  // Numbers in them, such as the reach of a window, are examples: a model sets its own.
  AttentionChoices choices = {};
  // The scope with reaches that suit a sentence; empty: as it is.
  std::string_view short_scope = {};
  // What a recurrent decoder makes its query of: parts as model.query has them.
  std::string_view decoder_query = "previous_state";
  // For n queries, m keys of depth d.
  std::string_view time = "n m d";
  std::string_view space = "(n + m) d";  // above inputs, in training
  std::string_view carries = "nothing";  // from a query to the next
  std::string_view paths = "fused, composed";
  // What runs the part that the four choices cannot say, in words; empty: there is none.
  std::string_view module = {};
  ModuleKind module_kind = ModuleKind::none;
  // Why a recurrent decoder cannot use the row, and what to take there; empty: it can.
  std::string_view refusal = {};
};

// Every mechanism, in the order of the documentation.
const std::vector<Mechanism>& mechanism_table();

// The row of that name; Error with the nearest name otherwise.
const Mechanism& mechanism(std::string_view name);

}  // namespace attend
