#pragma once

#include <limits>

#include "attend/ops/normalisers.h"

namespace attend {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// Fills rows of -inf with 0: their softmax would be NaN, and so would all derivatives.
inline at::Tensor without_empty(const at::Tensor& scores, const at::Tensor& empty) {
  return empty.defined() ? scores.masked_fill(empty, 0.0) : scores;
}

// Sums of scores below this count as 0: their inverses and the resulting gradients would not be
// finite.
inline double least_sum(at::ScalarType type) { return type == at::kDouble ? 0x1p-1000 : 0x1p-100; }

// log sum_j exp(s_ij). at::logsumexp would return exp(s_ij - lse_i) as its gradient; for large
// scores the rounded lse is too coarse for this.
at::Tensor log_sum_exp(const at::Tensor& scores);

// 0 per row, for normalisers without a number of their own; NaN if a score of the row is NaN.
at::Tensor zero_of_each_row(const at::Tensor& scores);

// Weights 0 and normaliser -inf for empty rows.
inline Normalised with_empty(const at::Tensor& weights, const at::Tensor& normaliser,
                             const at::Tensor& empty) {
  if (!empty.defined()) return {weights, normaliser};
  return {weights.masked_fill(empty, 0.0),
          normaliser.masked_fill(empty.squeeze(-1), minus_infinity)};
}

// K of top_k.
int64_t top_of(const NormaliserOptions& options);

// Table rows that choose one key, or compute its expectation.
std::vector<NormaliserRow> one_key_rows();

// Rows from 2019 on that need more than a sum: entmax, softpick, stick-breaking, top_k.
std::vector<NormaliserRow> later_rows();

}  // namespace attend
