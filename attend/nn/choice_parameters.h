#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/nn/attention_choices.h"
#include "attend/ops/biases.h"
#include "attend/ops/scores.h"

namespace attend {

// A tensor that the choices of a mechanism read.
struct ChoiceParameter {
  std::string name;   // as --param has it: W_q, alibi_slopes
  std::string shape;  // "query_depth, key_depth"; empty for one number
  std::string meaning;
  int64_t axes = 0;        // without those of batch and heads
  bool required = false;   // else `meaning` says what its absence means
  bool is_trained = true;  // else it says how something is laid out
};

// Lists the parameters of the score, then those of the bias and of a predicted centre. Error on
// choices that do not exist.
std::vector<ChoiceParameter> parameters_of(const AttentionChoices& choices);

// What a bias must know of the queries.
struct BiasQueries {
  int64_t axes = 4;  // of their tensor
  bool look_ahead = true;
  int64_t largest_distance = 0;  // of buckets; 0: T5's 128
};

// The largest distance that buckets:N,DISTANCE names; 0 if none.
int64_t largest_distance(const BiasChoice& choice);

// What a row of bias_table() adds to the scores, from its tensors by the names of its parameters.
// Nothing for the sink, which is none of the scores.
Bias bias_of(const BiasRow& row, const Parameters& tensors, const BiasQueries& queries);

}  // namespace attend
