#pragma once

#include <cstdint>
#include <vector>

#include "attend/explain/subject.h"

namespace attend {

// What happens to an answer when other weights take the place of those that it is read off. All are
// means over the answer's tokens, of which at most `rows`, evenly spaced, are looked at; of each
// the weights of its own row alone are changed, among the keys in scope, to what the normaliser
// allows.
struct WeightTestOptions {
  int64_t permutations = 100;
  int64_t rows = 8;
  int64_t steps = 30;          // of the search for other weights
  double nearly_equal = 0.01;  // total variation that such weights may move the answer by
  int64_t networks = 4;        // untrained ones, whose maps the answer's is compared with
  int64_t orders = 50;         // of a source's tokens, drawn as a map's baseline
  uint64_t seed = 1;           // of all that is drawn; the figures depend on no other
};

struct WeightTests {
  // That were tested: those that read a row with two keys in scope or more. Without any the
  // figures mean nothing.
  int64_t tokens = 0;
  double flips_by_largest = 0;  // share of tokens that change without the weight of largest size
  double flips_by_random = 0;   // and without another, drawn at random (Serrano & Smith 2019)
  // Median total variation between the answer and that under permuted weights (Jain & Wallace
  // 2019, 4.2.1).
  double permuted = 0;
  // The largest Jensen-Shannon divergence, in nats up to ln 2, of weights that give nearly the same
  // answer (their 4.2.2). Where weights need not sum to 1, that of their shares.
  double adversarial = 0;
  double uniform_loss = 0;  // nats per token lost under uniform weights (Wiegreffe & Pinter 2019)
};

// Error where nothing in the network attends, or where weights are running sums.
WeightTests test_weights(const Subject& subject, const WeightTestOptions& options = {});

}  // namespace attend
