#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/nn/attention_choices.h"

namespace attend {

// One part of a bias as the command line names it: "buckets:32" is {"buckets", "32"}.
struct BiasPart {
  std::string name;      // of bias_table(), offset or sink
  std::string argument;  // "" without one
};

// "alibi + buckets:32". Error with the nearest name on an unknown part and on one named twice.
std::vector<BiasPart> bias_parts(std::string_view text);

// A tensor that the choices of a mechanism read.
struct ChoiceParameter {
  std::string name;   // as --param has it: W_q, alibi_slopes
  std::string shape;  // "query_depth, key_depth"; empty for one number
  std::string meaning;
  int64_t axes = 0;       // without those of batch and heads
  bool required = false;  // else `meaning` says what its absence stands for
};

// Those of the score, then of the bias and of a predicted centre. Error on choices that are not
// there.
std::vector<ChoiceParameter> parameters_of(const AttentionChoices& choices);

}  // namespace attend
