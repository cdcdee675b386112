#pragma once

#include <torch/nn/module.h>

namespace attend {

// Attention that draws one key per query cannot be differentiated through the draw. Its gradient is
// estimated (Williams 1992; Xu et al. 2015, eq. 10-12): raise the log probability of the draws that
// were followed by a larger reward than usual.

// What a hard attention drew, a query each.
struct HardDraw {
  at::Tensor log_probability;  // log p(draw), with its gradient
  at::Tensor entropy;          // -sum_j p_j log p_j of the softmax that was drawn from
};

// scores [..., Tk], -inf outside the scope, and the one-hot weights [..., Tk] that were drawn from
// their softmax -> [...]; both 0 for a query with no key in scope.
HardDraw hard_draw(const at::Tensor& scores, const at::Tensor& weights);

// What each draw led to: the rewards [B, T] of its own step and the later ones added up, for a draw
// changes everything after it.
at::Tensor rewards_to_go(const at::Tensor& rewards);

// A loss whose gradient estimates that of -E[sum of rewards]: -sum (returns - baseline) log p(draw)
// over [B, T]. returns and baseline enter as numbers: the part of the gradient that flows through
// the rewards themselves is the caller's loss. The baseline, of a shape that broadcasts, changes
// the variance and not the mean as long as it does not depend on the draws of its own row.
at::Tensor reinforce_loss(const at::Tensor& log_probability, const at::Tensor& returns,
                          const at::Tensor& baseline);

// The usual reward: a number trained to be near the rewards. Gradient descent of rate r on loss()
// divided by how many rewards count makes it the moving average
// b <- (1 - 2 r) b + 2 r (mean reward); r = 0.05 gives that of Xu et al. 2015, 4.1. It is a
// parameter, so what carries weights carries it: checkpoints, model files, replicas that add up
// their gradients.
class MovingAverage : public torch::nn::Module {
 public:
  explicit MovingAverage(double first = 0);

  // What to subtract; no gradient flows into it.
  at::Tensor value() const;

  // A scalar: the squared distances of the rewards from the average, summed over those where
  // `counts`, bool of the rewards' shape, is true.
  at::Tensor loss(const at::Tensor& rewards, const at::Tensor& counts) const;

 private:
  at::Tensor scaled() const;
};

}  // namespace attend
