#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// The four choices of a mechanism by name, as configuration files hold them.
struct AttentionChoices {
  std::string score = "scaled_dot";    // a row of score_table()
  std::string scope = "all";           // as parse_scope reads it, or around:D
  std::string bias = {};               // parts joined by +, as parse_biases reads them
  std::string normaliser = "softmax";  // as Normaliser reads it
};

// around:D, the keys at most D from a centre predicted from the query (local-p, Luong et al. 2015):
// that D, 1 or more. None for another scope; Error for around with anything but such a number.
std::optional<int64_t> around_reach(std::string_view scope);

// One trained part of the bias.
struct BiasChoice {
  std::string name;     // of bias_choice_table()
  int64_t size = 0;     // buckets, the longest distance of relative keys, or the rows of the grid
  int64_t columns = 0;  // of the grid
};

// How a part of the bias is written.
struct BiasChoiceRow {
  std::string_view name;
  std::string_view syntax;   // "buckets:N"
  int64_t numbers;           // that follow the name: 0, 1, or 2 joined by x
  int64_t least;             // that each of them may be
  std::string_view meaning;  // the trained parameters and what they start from
};

// Every part, in the order of the documentation.
const std::vector<BiasChoiceRow>& bias_choice_table();

// "alibi + buckets:32" as its parts; none for an empty text. Error on an unknown part, on a number
// that is missing or too small, and on the same part twice.
std::vector<BiasChoice> parse_biases(std::string_view text);

// The name before the colon: temperature of temperature:2.
std::string_view base_name(std::string_view choice);

// Error when a choice is not there, or when two do not go together: a predicted centre without the
// Gaussian that trains it, an offset where the normaliser cancels it, a sink outside of softmax,
// scores that may be negative where the normaliser divides by their sum.
void check_choices(const AttentionChoices& choices);

}  // namespace attend
