#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/nn/attention_choices.h"
#include "attend/ops/biases.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scores.h"

namespace attend {

// A tensor that the choices of a mechanism read.
struct ChoiceParameter {
  std::string name;   // name in --param: W_q, alibi_slopes
  std::string shape;  // "query_depth, key_depth"; empty for one number
  std::string meaning;
  int64_t axes = 0;        // without the batch and head axes
  bool required = false;   // if false, `meaning` says what its absence means
  bool is_trained = true;  // if false, it describes a layout
};

// Lists the parameters of the score, the bias, a predicted centre and the normaliser, in this
// order. Error on choices that do not exist.
std::vector<ChoiceParameter> parameters_of(const AttentionChoices& choices);

// Name of the parameter of a normaliser: entmax_alpha. The row has one.
std::string parameter_name(const NormaliserRow& row);

// Properties of the queries that a bias needs.
struct BiasQueries {
  int64_t axes = 4;  // axes of the query tensor
  bool look_ahead = true;
  int64_t largest_distance = 0;  // for buckets of distances; 0: not given
  int64_t number = 0;            // first number of the choice; 0 if absent
};

// The first number of a choice; 0 if absent.
int64_t first_number(const BiasChoice& choice);

// The largest distance that a choice such as buckets:N,DISTANCE names; 0 if it names none.
int64_t largest_distance(const BiasChoice& choice);

// Whether a bias multiplies products of keys by the scale of the score. Queries must then not be
// mapped before the call of attention(): mapped queries include the scale.
bool needs_scale(const AttentionChoices& choices);

// The bias that a row of bias_table() adds to the scores. `tensors` are keyed by parameter name.
// Returns no bias for the sink, which does not change the scores.
Bias bias_of(const BiasRow& row, const Parameters& tensors, const BiasQueries& queries);

}  // namespace attend
