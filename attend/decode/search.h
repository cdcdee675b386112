#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "attend/decode/decoding_state.h"
#include "attend/decode/not_a_number.h"
#include "attend/decode/request.h"
#include "attend/decode/search_options.h"

namespace attend {

// Tokens that begin and end a sequence.
struct SpecialTokens {
  int64_t bos = 0;
  int64_t eos = 0;
  std::vector<int64_t> never = {};  // never in an answer, except in its prefix
};

// One sentence of a search.
struct SearchTask {
  int64_t longest = 0;  // maximum number of tokens of the answer, with its prefix
  // Fixed number of tokens of an answer without EOS; 0: EOS ends it. In a search either all tasks
  // have a fixed length or none.
  int64_t length = 0;
  std::vector<int64_t> prefix = {};  // beginning of the answer
  // Number of first tokens of the prefix with probability 1, such as the language of a translation.
  // They are not part of a minimum length.
  int64_t certain = 0;
  std::vector<int64_t> never = {};  // never in the answer, except in its prefix
  int64_t source_length = 0;        // for the coverage penalty
  size_t number = 0;                // selects the random numbers; passed to the sink
  bool streams = false;             // calls Sink::token, in greedy search and sampling
  // Receives candidates without texts, or Answer::error if the model's probabilities for the
  // sentence are NaN. Must outlive the search.
  Sink* sink = nullptr;
};

// Answers B sentences at once, with up to nbest hypotheses per sentence. `start` holds one
// hypothesis per sentence.
//
// Beam search (Graves 2012, Sutskever et al. 2014): a finished hypothesis leaves the beam, which
// narrows by one. A sentence is done when its beam is empty or its hypotheses have the longest
// length; at that length only EOS may still extend one. Results are ordered best first, complete
// ones before cut ones. The penalties rank the finished hypotheses; the beam itself keeps the most
// probable.
//
// With `sampling`: nbest answers per sentence, in the order of their random numbers.
//
// Sinks of the tasks are optional; their done() is not called. Error if an option is out of range,
// or a prefix is longer than the answer may be. NotANumber if the model's probabilities are NaN.
std::vector<std::vector<Candidate>> search(std::unique_ptr<DecodingState> start,
                                           const std::vector<SearchTask>& tasks,
                                           const SpecialTokens& special,
                                           const SearchOptions& options);

// As search(), for sentences that join while others are being answered. Results do not depend on
// the other sentences if the rows of the network's steps are independent
// (decode/batch_invariance.h).
class Search {
 public:
  // Errors as search().
  Search(const SpecialTokens& special, const SearchOptions& options);
  ~Search();

  bool is_done() const;  // no sentence is left

  // Whether sentences may join: the network's states must support append(), and weights must not be
  // kept, because their sizes differ between sentences.
  bool takes_more() const;

  // `start` holds one hypothesis per task. Errors as search(), and if takes_more() is false.
  void add(std::unique_ptr<DecodingState> start, std::vector<SearchTask> tasks);

  // Extends each hypothesis by one token and removes sentences that are done. Requires !is_done().
  void step();

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace attend
