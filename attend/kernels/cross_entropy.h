#pragma once

#include <cstdint>

#include "attend/kernels/storage.h"

namespace attend::kernels {

// Rows of logits against the tokens that they should have named:
//   p = softmax(logits + bias)
//   loss = -(1 - smoothing) log p_target - smoothing / (V - first) sum_{j >= first} log p_j
// (Szegedy et al. 2016)
template <class S>
struct CrossEntropy {
  int64_t rows = 0;
  int64_t tokens = 0;                 // V, at least 1
  S* logits = nullptr;                // [rows, V]
  const Compute<S>* bias = nullptr;   // [V]; null: none
  const int64_t* target = nullptr;    // [rows], 0 .. V - 1
  double smoothing = 0;               // 0 .. 1
  int64_t first = 0;                  // the first of the tokens over which it spreads, below V
  bool with_slopes = false;           // write dloss/dlogit over the logits
  Compute<S>* bias_slopes = nullptr;  // [V], to which the slopes' sums over rows are added; or null
};

// The sum of the losses. S is float, double or BFloat16, of which the arithmetic is float.
template <class S>
double cross_entropy(const CrossEntropy<S>& problem);

}  // namespace attend::kernels
