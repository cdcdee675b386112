#pragma once

#include <string>

namespace attend {

// The four choices of a mechanism by name, as configuration files hold them.
struct AttentionChoices {
  std::string score = "scaled_dot";    // a row of score_table()
  std::string scope = "all";           // as parse_scope reads it, or around:D
  std::string bias = {};               // parts joined by +, as parse_biases reads them
  std::string normaliser = "softmax";  // as Normaliser reads it
};

// Error when a choice does not exist, when a bias cannot be trained or lacks the numbers that
// determine its table, and when two choices contradict each other: a predicted centre without the
// Gaussian that trains it, an offset where the normaliser cancels it, a sink outside of softmax,
// scores that may be negative where the normaliser divides by their sum.
void check_choices(const AttentionChoices& choices);

}  // namespace attend
