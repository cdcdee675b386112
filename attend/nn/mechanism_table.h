#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/attention_choices.h"

namespace attend {

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
  // Numbers in them, such as the reach of a window, are examples: a model sets its own.
  AttentionChoices choices = {};
  // What a recurrent decoder makes its query of: parts as model.query has them.
  std::string_view decoder_query = "previous_state";
  // For n queries, m keys of depth d.
  std::string_view time = "n m d";
  std::string_view space = "(n + m) d";  // above inputs, in training
  std::string_view carries = "nothing";  // from a query to the next
  std::string_view paths = "fused, composed";
  // What runs the part that the four choices cannot say; empty: there is none.
  std::string_view module = {};
  // Why a recurrent decoder cannot use the row, and what to take there; empty: it can.
  std::string_view refusal = {};
};

// Every mechanism, in the order of the documentation.
const std::vector<Mechanism>& mechanism_table();

// The row of that name; Error with the nearest name otherwise.
const Mechanism& mechanism(std::string_view name);

}  // namespace attend
