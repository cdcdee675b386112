#pragma once

#include <cstdint>
#include <vector>

#include "attend/explain/explanation.h"

namespace attend {

// Tests of an answer under other weights. All figures are means over at most `rows` tokens of the
// answer, evenly spaced. For each token, only the weights of its own row change, among the keys in
// scope, to values that the normaliser allows.
struct WeightTestOptions {
  int64_t permutations = 100;
  int64_t rows = 8;
  int64_t steps = 30;          // steps of the search for adversarial weights
  double nearly_equal = 0.01;  // largest total variation of the answer under such weights
  int64_t networks = 4;        // untrained ones, to compare maps with
  int64_t orders = 50;         // drawn orders of a source's tokens, as a map's baseline
  uint64_t seed = 1;           // seed of all draws; the figures depend on no other seed
};

struct WeightTests {
  // Number of tested tokens (at least two keys in scope). If 0, the figures are meaningless.
  int64_t tokens = 0;
  double flips_by_largest = 0;  // share of tokens that change without the largest weight
  double flips_by_random = 0;   // the same without a random other weight (Serrano & Smith 2019)
  // Median total variation between the answer and the answer under permuted weights (Jain & Wallace
  // 2019, 4.2.1).
  double permuted = 0;
  // Largest Jensen-Shannon divergence, up to ln 2 nats, of weights that give nearly the same answer
  // (their 4.2.2). If weights need not sum to 1, the divergence of their shares.
  double adversarial = 0;
  double uniform_loss = 0;  // nats per token lost under uniform weights (Wiegreffe & Pinter 2019)
};

// Error if the network has no attention, if weights are running sums, or if the answer is a number.
WeightTests test_weights(const Explanation& explanation, const WeightTestOptions& options = {});

}  // namespace attend
