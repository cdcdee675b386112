#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"
#include "attend/models/seq2seq.h"

namespace attend {

// How much of the loss reaches the encoder: the norm of the gradient of a pair's loss with respect
// to each hidden state of the encoder's forward direction.
struct GradientFlow {
  // Geometric means by the distance of the state from the last token of the source.
  std::vector<double> norms;
  std::vector<int64_t> states;  // that each is the mean of
};

// With a fixed context the loss reaches a state through the recurrence alone, so that its gradient
// vanishes with distance (Bengio et al. 1994); attention reaches each state at once. Measured
// without dropout, over all pairs; empty sources are left out.
GradientFlow gradient_flow(Seq2Seq& network, const std::vector<EncodedPair>& pairs);

}  // namespace attend
