#include "attend/nn/pointer.h"

namespace attend {

using at::Tensor;

Tensor copying_log_probabilities(const Tensor& logits, const Tensor& gate, const Tensor& weights,
                                 const Tensor& source) {
  // A float32 softmax may round to 0, which has no logarithm.
  constexpr double least = 1e-30;
  // LibTorch's autocast gives 16-bit logits but float32 weights.
  const auto type = at::promote_types(logits.scalar_type(), weights.scalar_type());
  const Tensor generated = gate.to(type).sigmoid() * logits.to(type).softmax(-1);
  // 1 - sigmoid(x) = sigmoid(-x)
  const Tensor copied = gate.to(type).neg().sigmoid() * weights.to(type);
  return generated.scatter_add(-1, source, copied).clamp_min(least).log();
}

Tensor coverage_loss(const Tensor& weights, const Tensor& counts) {
  const Tensor before = weights.cumsum(1) - weights;
  return (at::minimum(weights, before).sum(2) * counts).sum();
}

}  // namespace attend
