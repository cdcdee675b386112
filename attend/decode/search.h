#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "attend/decode/not_a_number.h"
#include "attend/decode/search_options.h"
#include "attend/steps/decoding_state.h"

namespace attend {

// The tokens that begin and end a sequence, for the search.
struct SpecialTokens {
  int64_t bos = 0;
  int64_t eos = 0;
  std::vector<int64_t> never = {};  // in no answer, unless it is told to begin with them
};

// A token that may stand at some place of an answer.
struct RivalToken {
  int64_t token = 0;
  double log_probability = 0;

  bool operator==(const RivalToken&) const = default;
};

// A token that an answer has got.
struct GrownToken {
  int64_t answer = 0;  // which of those that are drawn
  int64_t token = 0;   // not the EOS
  double log_probability = 0;
  at::Tensor weights;                   // [S] float on the CPU, where the search keeps weights
  std::vector<RivalToken> rivals = {};  // as Hypothesis has them
};

struct Hypothesis {
  std::vector<int64_t> tokens;            // without BOS and EOS
  std::vector<double> log_probabilities;  // of each token, and of the EOS that ended it
  // Of each token, and of the EOS that ended it, the most probable ones, best first, as many as
  // SearchOptions::rivals says; of a token that was given, that one alone.
  std::vector<std::vector<RivalToken>> rivals = {};
  double score = 0;            // what hypotheses are ranked by
  double log_probability = 0;  // the sum
  bool complete = false;       // false: cut at the longest length, behind which EOS is
                               // not what the beam, or the draw, takes
  at::Tensor weights;          // [tokens, S] float on the CPU, where asked for and had
};

// One sentence of a search.
struct SearchTask {
  int64_t longest = 0;  // tokens of the answer at most, those of the prefix included
  // How many tokens an answer has that no EOS ends; 0: EOS ends it. All tasks of a search have such
  // a length, or none.
  int64_t length = 0;
  std::vector<int64_t> prefix = {};  // what the answer begins with
  std::vector<int64_t> never = {};   // tokens that are in no answer, unless it begins with them
  int64_t source_length = 0;         // for the coverage penalty
  uint64_t stream = 0;               // which random numbers are the sentence's
  // Asked before each step; true ends the sentence with what it has, as at the longest length.
  std::function<bool()> is_stopped = {};
  // Told about each token as soon as it stays: at greedy search, and of answers that are drawn.
  std::function<void(const GrownToken&)> grows = {};
  // Told the hypotheses of a Search's sentence as soon as it is done.
  std::function<void(std::vector<Hypothesis>)> found = {};
  // Called in place of `found` if the model's probabilities for the sentence are NaN. If it is
  // empty, step() throws.
  std::function<void(const NotANumber& error)> failed = {};
};

// Answers B sentences at once; `start` holds one hypothesis per sentence. Up to nbest hypotheses
// per sentence.
//
// Beam search (Graves 2012, Sutskever et al. 2014): a hypothesis that ends leaves the beam, which
// narrows by one; a sentence is done when its beam is empty, or when its hypotheses have the
// longest length and those that EOS extends have ended. Best first, complete ones before those that
// were cut. The penalties rank the finished hypotheses; the beam itself keeps the most probable.
//
// With `sampling`: nbest answers per sentence, in the order of their random numbers.
//
// Error when an option is out of range, or a prefix is longer than the answer may be. NotANumber
// where the model's probabilities are NaN.
std::vector<std::vector<Hypothesis>> search(std::unique_ptr<DecodingState> start,
                                            const std::vector<SearchTask>& tasks,
                                            const SpecialTokens& special,
                                            const SearchOptions& options);

// The same of sentences that come while others are being answered. What is found for one does not
// depend on those beside it where rows of the network's steps do not (steps/batch_invariance.h).
class Search {
 public:
  // Error as search().
  Search(const SpecialTokens& special, const SearchOptions& options);
  ~Search();

  bool is_done() const;  // there is no sentence

  // Whether sentences may join those that are there: the network's states take more, and weights,
  // which differ in their length, are not wanted.
  bool takes_more() const;

  // `start` holds one hypothesis for each task. Error as search(), and where takes_more() says no.
  void add(std::unique_ptr<DecodingState> start, std::vector<SearchTask> tasks);

  // Extends each hypothesis by one token and removes sentences that are done. Requires !is_done().
  // NotANumber if probabilities are NaN, unless the sentence has SearchTask::failed.
  void step();

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace attend
