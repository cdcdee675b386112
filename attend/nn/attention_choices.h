#pragma once

#include <string>

namespace attend {

// The four choices of a mechanism by name, as in configuration files.
struct AttentionChoices {
  std::string score = "scaled_dot";    // a row of score_table()
  std::string scope = "all";           // syntax of parse_scope, or around:D
  std::string bias = {};               // parts joined by +, syntax of parse_biases
  std::string normaliser = "softmax";  // syntax of Normaliser
};

// Error if a choice does not exist, or if a bias cannot be trained or lacks the numbers that give
// its table its size. Error also for contradictory choices: a predicted centre without the Gaussian
// that trains it, an offset that the normaliser cancels, a sink without softmax. Scores that may be
// negative contradict a normaliser that divides by their sum.
void check_choices(const AttentionChoices& choices);

// Whether weights are the softmax of the scores, without a temperature, factors or draws.
bool is_plain_softmax(const AttentionChoices& choices);

}  // namespace attend
