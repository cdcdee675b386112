#pragma once

#include <ATen/ATen.h>

namespace attend {

// Log probabilities [.., V] of a network that copies tokens of its source (See et al. 2017, eq.
// 9), where sources and targets have one vocabulary:
//   p(w) = g softmax(logits)_w + (1 - g) sum_{i: x_i = w} a_i        g = sigmoid(gate)
// logits [.., V], gate [.., 1], weights [.., S] over the source, each row of sum 1, and the source
// as ids [.., S] int64. No less than log 1e-30.
at::Tensor copying_log_probabilities(const at::Tensor& logits, const at::Tensor& gate,
                                     const at::Tensor& weights, const at::Tensor& source);

// What it costs to look where earlier steps did (See et al. 2017, eq. 12), summed over the steps
// that count: sum_t sum_i min(a_ti, c_ti), c_t the sum of the weights before t. weights [B, T, S],
// counts [B, T] bool.
at::Tensor coverage_loss(const at::Tensor& weights, const at::Tensor& counts);

}  // namespace attend
