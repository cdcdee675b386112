#pragma once

#include <torch/nn/module.h>

namespace attend {

// Attention that draws one key per query cannot be differentiated through the draw. Its gradient is
// estimated (Williams 1992; Xu et al. 2015, eq. 10-12): training raises the log probability of
// draws that were followed by a larger reward than usual.

// Result of a hard attention, per query.
struct HardDraw {
  at::Tensor log_probability;  // log p(draw), with its gradient
  at::Tensor entropy;          // -sum_j p_j log p_j of the softmax that the draw used
};

// scores [..., Tk], -inf outside the scope; weights [..., Tk], one-hot, drawn from their softmax.
// Returns tensors of shape [...]; both are 0 for a query with no key in scope.
HardDraw hard_draw(const at::Tensor& scores, const at::Tensor& weights);

// Return of each draw: the sum of the rewards [B, T] of its own step and all later steps, which it
// influences.
at::Tensor rewards_to_go(const at::Tensor& rewards);

// A loss to estimate the gradient of -E[sum of rewards]: -sum (returns - baseline) log p(draw)
// over [B, T]. `returns` and `baseline` are constants here. The gradient through the rewards
// themselves is the caller's loss. `baseline` must broadcast. It changes only the variance, not the
// mean, if it does not depend on the draws of its own row.
at::Tensor reinforce_loss(const at::Tensor& log_probability, const at::Tensor& returns,
                          const at::Tensor& baseline);

// Trained baseline: a number close to the usual reward. Gradient descent with rate r on loss()
// divided by the number of counted rewards gives the moving average b <- (1 - 2 r) b + 2 r (mean
// reward); r = 0.05 is the baseline of Xu et al. 2015, 4.1. It is a parameter, so checkpoints,
// model files and replicas handle it like a weight.
class MovingAverage : public torch::nn::Module {
 public:
  explicit MovingAverage(double first = 0);

  // The baseline to subtract; no gradient flows into it.
  at::Tensor value() const;

  // Scalar: sum of the squared distances of the rewards from the average, over the rewards for
  // which `counts` (bool, shape of the rewards) is true.
  at::Tensor loss(const at::Tensor& rewards, const at::Tensor& counts) const;

 private:
  at::Tensor scaled() const;
};

}  // namespace attend
