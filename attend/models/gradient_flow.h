#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/pairs.h"

namespace attend {

class Seq2Seq;
struct EncodedPair;

// How much of the loss reaches the encoder: the norm of the gradient of a pair's loss with respect
// to each hidden state of the encoder's forward direction.
struct GradientFlow {
  // Geometric means by distance of the state from the last source token.
  std::vector<double> norms;
  std::vector<int64_t> states;  // number of states in each mean
};

// With a fixed context, the loss reaches a state only through the recurrence, so its gradient
// vanishes with distance (Bengio et al. 1994). Attention reaches each state directly. Measured
// without dropout over all pairs; empty sources are skipped.
GradientFlow gradient_flow(Seq2Seq& network, const std::vector<EncodedPair>& pairs);

// As above, for the model in a folder, with its trained weights or new weights. Error unless it is
// a seq2seq model.
GradientFlow gradient_flow(const std::string& folder, bool trained,
                           const std::vector<Example>& examples);

}  // namespace attend
