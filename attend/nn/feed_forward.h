#pragma once

#include <torch/nn/module.h>

#include "attend/nn/dropout.h"
#include "attend/nn/linear.h"

namespace attend {

// relu: max(0, x); gelu: x Phi(x), Phi the normal distribution (Hendrycks & Gimpel 2016).
enum class HiddenActivation { relu, gelu };

// f(x W_1 + b_1) W_2 + b_2 at every position (Vaswani et al. 2017, eq. 2, where f is relu), with
// dropout on the hidden layer.
class FeedForward : public torch::nn::Module {
 public:
  // `hidden` units between vectors of `depth`.
  FeedForward(int64_t depth, int64_t hidden, double dropout = 0,
              HiddenActivation activation = HiddenActivation::relu);

  // x [..., depth] -> [..., depth].
  at::Tensor forward(const at::Tensor& x, const Pass& pass);

 private:
  Linear hidden_{nullptr};
  Linear output_{nullptr};
  double dropout_;
  HiddenActivation activation_;
};

}  // namespace attend
