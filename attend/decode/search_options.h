#pragma once

#include <cstdint>
#include <optional>

#include "attend/base/enum_names.h"

namespace attend {

// How a token is drawn. Each answer of each source has random numbers of its own, so that what a
// source gets does not depend on the sources beside it.
struct Sampling {
  double temperature = 1.0;  // probabilities to the power of 1 / temperature; above 0
  int64_t top_k = 0;         // of the most probable k tokens (Fan et al. 2018); 0 is all
  double top_p = 1.0;        // of the fewest that have this probability (Holtzman et al. 2020)
  uint64_t seed = 1;
  uint64_t first = 0;  // the number of a call's first source, by which its random numbers differ
};

// What a log probability is divided by, with L the tokens and the end.
enum class LengthPenalty {
  power,  // L^a
  wu,     // ((5 + L) / 6)^a (Wu et al. 2016, eq. 14)
};

// What an answer has where the model has no token.
enum class UnknownTokens {
  forbid,  // nothing: the answer consists of tokens of training
  copy,    // the source token that the step attended to most (Luong et al. 2015b, 3.3)
  keep,    // <unk>
};
inline EnumNames names_of(UnknownTokens) { return {"forbid", "copy", "keep"}; }

struct SearchOptions {
  int64_t beam = 1;             // hypotheses kept a source; 1 is greedy search
  int64_t nbest = 1;            // hypotheses returned, at most beam; or answers drawn
  double length_penalty = 1.0;  // the exponent a; 0 is none
  LengthPenalty length_penalty_form = LengthPenalty::power;
  // b in b sum_i log(min(sum_j w_ji, 1)) (Wu et al. 2016, eq. 14), added to the score: i over the
  // tokens of the source, w_ji the weight that target token j gave to i. 0 is none.
  double coverage_penalty = 0;
  int64_t minimum_length = 0;  // tokens before the end may come
  int64_t maximum_length = 0;  // tokens behind the prefix; 0: as long as the model says,
                               // or minimum_length where that is more
  bool with_weights = false;   // keep the attention of each hypothesis
  int64_t rivals = 0;          // how many of the most probable tokens are told beside each token;
                               // not of answers that are drawn
  bool keep_seen = false;      // items of a source are answers too, where items are ranked
  std::optional<Sampling> sampling = {};  // draw answers; beam does not count
  // Without a value: copy where the model copies (model.copy), else forbid, since <unk> is no part
  // of any text and a token that was attended to may be of another kind than those of answers.
  std::optional<UnknownTokens> unknown = {};

  // Takes the lengths that were not given from `own`, as far as those that were given allow.
  void take_lengths(const SearchOptions& own, bool has_minimum, bool has_maximum);

  void check() const;  // Error on a value out of range
};

}  // namespace attend
