#include "attend/nn/pointer.h"

namespace attend {

using at::Tensor;

Tensor copying_log_probabilities(const Tensor& logits, const Tensor& gate, const Tensor& weights,
                                 const Tensor& source) {
  // What a softmax of float32 may round to 0 has a logarithm too.
  constexpr double least = 1e-30;
  const Tensor generated = gate.sigmoid() * logits.softmax(-1);
  // 1 - sigmoid(x) = sigmoid(-x)
  const Tensor copied = gate.neg().sigmoid() * weights;
  return generated.scatter_add(-1, source, copied).clamp_min(least).log();
}

Tensor coverage_loss(const Tensor& weights, const Tensor& counts) {
  const Tensor before = weights.cumsum(1) - weights;
  return (at::minimum(weights, before).sum(2) * counts).sum();
}

}  // namespace attend
