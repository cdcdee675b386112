#pragma once

#include <ATen/ATen.h>

namespace attend {

// Log probabilities [.., V] of a network that copies tokens of its source (See et al. 2017, eq. 9).
// Source and target must share one vocabulary.
//   p(w) = g softmax(logits)_w + (1 - g) sum_{i: x_i = w} a_i        g = sigmoid(gate)
// logits [.., V], gate [.., 1], weights [.., S] over the source with rows of sum 1, source ids [..,
// S] int64. Results are at least log 1e-30.
at::Tensor copying_log_probabilities(const at::Tensor& logits, const at::Tensor& gate,
                                     const at::Tensor& weights, const at::Tensor& source);

// Penalty for attending to positions that earlier steps attended to (See et al. 2017, eq. 12),
// summed over the steps that count: sum_t sum_i min(a_ti, c_ti), c_t the sum of the weights before
// t. weights [B, T, S], counts [B, T] bool.
at::Tensor coverage_loss(const at::Tensor& weights, const at::Tensor& counts);

}  // namespace attend
