#pragma once

#include <ATen/ATen.h>

#include "attend/ops/attention.h"

namespace attend {

// State of linear attention during decoding: everything that later queries need of the keys and
// values so far. Its size does not depend on their number (Katharopoulos et al. 2020, eq. 18-20).
struct LinearState {
  at::Tensor sums;   // [B, Hkv, features, Dv + 1]: sum_j phi(k_j) (v_j, 1) / exp(shift); float32 or
                     // float64; undefined before the first key
  at::Tensor shift;  // [B, Hkv, 1, 1]: logarithm of the largest feature of a key so far, without a
                     // gradient

  // Computes attention for T new positions, then adds them to the state. Each new position sees
  // itself and all positions before it. The result equals attention() with scope causal() and
  // normaliser linear for these positions at the end of the sequence. Shapes, dtypes and errors are
  // as there. Requires equal numbers of queries and keys, and the same score parameters at every
  // step. Differentiable.
  AttentionResult step(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const Score& score);
};

}  // namespace attend
