#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/nn/step_model.h"

namespace attend {

struct BeamOptions {
  int64_t beam = 1;             // hypotheses kept a sentence; 1 is greedy search
  int64_t nbest = 1;            // hypotheses returned, at most beam
  double length_penalty = 1.0;  // score = log probability / length^length_penalty; 0 is none
  bool with_weights = false;    // keep the attention of each hypothesis
};

// The symbols that begin and end a sequence, for the search.
struct SequenceEnds {
  int64_t start = 0;
  int64_t end = 0;
};

struct Hypothesis {
  std::vector<int64_t> symbols;  // without start and end
  double score = 0;              // what hypotheses are ranked by
  double log_probability = 0;    // of the symbols and the end
  bool complete = false;         // false: cut at the longest length
  at::Tensor weights;            // [symbols, S] float on the CPU, when asked for and available
};

// Beam search over B sentences at once (Graves 2012, Sutskever et al. 2014): a hypothesis that ends
// leaves the beam, which narrows by one; a sentence is done when its beam is empty or at
// `longest[b]` symbols. `start` holds one hypothesis a sentence. Returns up to nbest hypotheses a
// sentence, best first. Error when an option is out of range.
std::vector<std::vector<Hypothesis>> beam_search(StepModel& model, StepState start,
                                                 const std::vector<int64_t>& longest,
                                                 const SequenceEnds& ends,
                                                 const BeamOptions& options);

}  // namespace attend
