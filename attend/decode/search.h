#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attend/nn/step_model.h"

namespace attend {

// How a token is drawn. Each answer of each sentence has random numbers of its own, so that what a
// sentence gets does not depend on the sentences beside it.
struct Sampling {
  double temperature = 1.0;  // probabilities to the power of 1 / temperature; above 0
  int64_t top_k = 0;         // of the most probable k tokens (Fan et al. 2018); 0 is all
  double top_p = 1.0;        // of the fewest that have this probability (Holtzman et al. 2020)
  uint64_t seed = 1;
};

// What a log probability is divided by, with L the tokens and the end.
enum class LengthPenalty {
  power,  // L^a
  wu,     // ((5 + L) / 6)^a (Wu et al. 2016, eq. 14)
};

struct SearchOptions {
  int64_t beam = 1;             // hypotheses kept a sentence; 1 is greedy search
  int64_t nbest = 1;            // hypotheses returned, at most beam; or answers drawn
  double length_penalty = 1.0;  // the exponent a; 0 is none
  LengthPenalty length_penalty_form = LengthPenalty::power;
  // b in b sum_i log(min(sum_j w_ji, 1)) (Wu et al. 2016, eq. 14), added to the score: i over the
  // tokens of the source, w_ji the weight that target token j gave to i. 0 is none.
  double coverage_penalty = 0;
  int64_t minimum_length = 0;             // tokens before the end may come
  bool with_weights = false;              // keep the attention of each hypothesis
  std::optional<Sampling> sampling = {};  // draw answers; beam does not count

  void check() const;  // Error on a value out of range
};

// The tokens that begin and end a sequence, for the search.
struct SpecialTokens {
  int64_t start = 0;
  int64_t end = 0;
};

// One sentence of a search.
struct SearchTask {
  int64_t longest = 0;               // tokens of the answer at most, those of the prefix included
  std::vector<int64_t> prefix = {};  // what the answer begins with
  int64_t source_length = 0;         // for the coverage penalty
  uint64_t stream = 0;               // which random numbers are the sentence's
};

struct Hypothesis {
  std::vector<int64_t> tokens;            // without start and end
  std::vector<double> log_probabilities;  // of each token, and of the end where complete
  double score = 0;                       // what hypotheses are ranked by
  double log_probability = 0;             // the sum
  bool complete = false;                  // false: cut at the longest length
  at::Tensor weights;                     // [tokens, S] float on the CPU, where asked for and had
};

// Answers B sentences at once; `start` holds one hypothesis a sentence. Up to nbest hypotheses a
// sentence.
//
// Beam search (Graves 2012, Sutskever et al. 2014): a hypothesis that ends leaves the beam, which
// narrows by one; a sentence is done when its beam is empty or at its longest length. Best first,
// complete ones before those that were cut. The penalties rank what was found; the beam itself
// keeps the most probable.
//
// With `sampling`: nbest answers a sentence, in the order of their random numbers.
//
// Error when an option is out of range, a prefix is longer than the answer may be, or the model's
// probabilities are NaN.
std::vector<std::vector<Hypothesis>> search(StepModel& model, StepState start,
                                            const std::vector<SearchTask>& tasks,
                                            const SpecialTokens& ends,
                                            const SearchOptions& options);

// The log probability that the model gives to each token of the targets, and to the end behind
// them.
std::vector<std::vector<double>> score_targets(StepModel& model, StepState start,
                                               const std::vector<std::vector<int64_t>>& targets,
                                               const SpecialTokens& ends);

}  // namespace attend
