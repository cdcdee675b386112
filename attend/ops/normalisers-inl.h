#pragma once

#include <limits>

#include "attend/ops/normalisers.h"

namespace attend {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// A row of -inf has a softmax of NaN, which would live on in the derivatives: it becomes all 0.
inline at::Tensor without_empty(const at::Tensor& scores, const at::Tensor& empty) {
  return empty.defined() ? scores.masked_fill(empty, 0.0) : scores;
}

// Sums of scores below it count as 0: their inverses, and what gradients make of these, would not
// be finite.
inline double least_sum(at::ScalarType type) { return type == at::kDouble ? 0x1p-1000 : 0x1p-100; }

// log sum_j exp(s_ij). The gradient of at::logsumexp would be exp(s_ij - lse_i): beside large
// scores the lse is rounded too coarsely for that to be the weight.
at::Tensor log_sum_exp(const at::Tensor& scores);

// 0 for each row, where a normaliser has no number of its own; NaN where a score is.
at::Tensor zero_of_each_row(const at::Tensor& scores);

// The rows of the table that choose one key, or expect to.
std::vector<NormaliserRow> one_key_rows();

}  // namespace attend
