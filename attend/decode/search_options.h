#pragma once

#include <cstdint>
#include <optional>

#include "attend/base/enum_names.h"
#include "attend/base/settings.h"

namespace attend {

// Sampling of tokens. Each answer of each source has its own random numbers, independent of other
// sources.
struct Sampling {
  double temperature = 1.0;  // above 0; probabilities to the power of 1 / temperature
  int64_t top_k = 0;         // only the k most probable tokens (Fan et al. 2018); 0: all
  double top_p = 1.0;        // only the fewest tokens with this probability (Holtzman et al. 2020)
  uint64_t seed = 1;

  bool operator==(const Sampling&) const = default;

  // temperature, top_k and top_p, for the command line and requests.
  Settings settings();
};

// Divisor of a log probability; L: number of tokens, with EOS.
enum class LengthPenalty {
  power,  // L^a
  wu,     // ((5 + L) / 6)^a (Wu et al. 2016, eq. 14)
};

// Treatment of unknown tokens in answers.
enum class UnknownTokens {
  forbid,  // never in an answer
  copy,    // replaced by the source token with the largest weight (Luong et al. 2015b, 3.3)
  keep,    // kept as <unk>
};
inline EnumNames names_of(UnknownTokens) { return {"forbid", "copy", "keep"}; }

struct SearchOptions {
  int64_t beam = 1;             // hypotheses per source; 1: greedy search
  int64_t nbest = 1;            // returned hypotheses, at most beam; or number of sampled answers
  double length_penalty = 1.0;  // exponent a; 0: no penalty
  LengthPenalty length_penalty_form = LengthPenalty::power;
  // b in b sum_i log(min(sum_j w_ji, 1)) (Wu et al. 2016, eq. 14), which is added to the score. i:
  // tokens of the source; w_ji: weight of token i for target token j. 0: no penalty.
  double coverage_penalty = 0;
  int64_t minimum_length = 0;  // tokens before EOS is allowed
  // Tokens after the prefix; 0: the model's limit, or minimum_length if that is larger.
  int64_t maximum_length = 0;
  bool with_weights = false;  // keep the attention weights of each hypothesis
  // Number of most probable tokens returned per token; must be 0 with sampling.
  int64_t alternatives = 0;
  bool keep_seen = false;                 // answers may be items of the source, if items are ranked
  bool no_answer = false;                 // an answer may be empty, if answers are spans (SQuAD 2)
  std::optional<Sampling> sampling = {};  // sample answers; beam is unused
  // Languages of a translator's sources and answers; empty: the model's default.
  std::string source_language = {};
  std::string target_language = {};
  // Default: copy if the model copies (model.copy), else forbid, because <unk> is not part of any
  // text and an attended source token may not be a possible answer token.
  std::optional<UnknownTokens> unknown = {};

  bool operator==(const SearchOptions&) const = default;

  // beam, nbest, length_penalty, coverage_penalty, minimum_length, maximum_length, from, to,
  // keep_seen and no_answer, for configurations, the command line and requests.
  Settings settings();
  // The options that a model folder may have: beam, length_penalty, minimum_length, maximum_length,
  // no_answer.
  Settings folder_settings();

  // Takes the lengths that were not given from `own`. If the minimum would exceed the maximum, the
  // length that was not given becomes equal to the given one.
  void take_lengths(const SearchOptions& own, bool has_minimum, bool has_maximum);

  void check() const;  // Error on a value out of range
};

}  // namespace attend
