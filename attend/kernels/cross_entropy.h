#pragma once

#include <cstdint>

#include "attend/kernels/storage.h"

namespace attend::kernels {

// Cross entropy of rows of logits and target tokens, with label smoothing:
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
  int64_t first = 0;                  // first token that smoothing applies to, below V
  bool with_slopes = false;           // overwrites the logits with dloss/dlogit
  Compute<S>* bias_slopes = nullptr;  // [V]: sums of the slopes over rows are added; or null
};

// Returns the sum of the losses. S is float, double or BFloat16; BFloat16 uses float arithmetic.
template <class S>
double cross_entropy(const CrossEntropy<S>& problem);

}  // namespace attend::kernels
