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
  // Geometric means by the distance of the state from the last token of the source.
  std::vector<double> norms;
  std::vector<int64_t> states;  // that each is the mean of
};

// With a fixed context the loss reaches a state through the recurrence alone, so that its gradient
// vanishes with distance (Bengio et al. 1994); attention reaches each state at once. Measured
// without dropout, over all pairs; empty sources are left out.
GradientFlow gradient_flow(Seq2Seq& network, const std::vector<EncodedPair>& pairs);

// The same of the model in a folder, with the weights that it was trained to or new ones. Error
// where it is no seq2seq model.
GradientFlow gradient_flow(const std::string& folder, bool trained,
                           const std::vector<Example>& examples);

}  // namespace attend
