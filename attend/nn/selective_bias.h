#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "attend/ops/attention.h"

namespace attend {

// Selective attention (Leviathan et al. 2024, 3): each position lowers the scores of keys that
// later positions no longer need.
//   w_ij = softmax_j(s_ij - F_ij),  F_ij = sum_{j < t < i} max(0, s_tj of head 0),  F_i0 = 0
// All heads share F.
struct SelectiveBias {
  at::Tensor bias;   // [B, 1, Tq, Tk], -F
  at::Tensor total;  // [B, 1, 1, Tk], F of the next query
};

// F for query [B, 1, Tq, D] and key [B, 1, Tk, D] of head 0. Query i has position i + offset, and
// `scope` is relative to query 0; keys outside of it add nothing. `total` of the queries before;
// undefined: none. Holds Tq Tk numbers: a row needs the sums over all rows before it.
SelectiveBias selective_bias(const at::Tensor& query, const at::Tensor& key, const Score& score,
                             const Scope& scope, int64_t offset, const at::Tensor& total);

}  // namespace attend
