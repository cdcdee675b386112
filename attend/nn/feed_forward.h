#pragma once

#include <torch/nn/module.h>

#include "attend/base/enum_names.h"
#include "attend/nn/dropout.h"
#include "attend/nn/linear.h"

namespace attend {

// relu: max(0, x); gelu: x Phi(x), Phi the normal distribution (Hendrycks & Gimpel 2016);
// gelu_tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), an approximation of gelu; tanh;
// swish: x / (1 + exp(-x)) (Ramachandran et al. 2017), also called SiLU.
enum class HiddenActivation { relu, gelu, gelu_tanh, tanh, swish };
inline EnumNames names_of(HiddenActivation) {
  return {"relu", "gelu", "gelu_tanh", "tanh", "swish"};
}

// f(x). activate() works in place and requires that no gradients are recorded.
at::Tensor activated(const at::Tensor& x, HiddenActivation activation, const Pass& pass = {});
void activate(at::Tensor& x, HiddenActivation activation);

// f(x W_1 + b_1) W_2 + b_2 at every position (Vaswani et al. 2017, eq. 2, with f = relu), with
// dropout on the hidden layer. If gated, the hidden units are multiplied by (x W_g + b_g) (Shazeer
// 2020).
class FeedForward : public torch::nn::Module {
 public:
  // `depth`: size of input and output vectors; `hidden`: number of hidden units.
  FeedForward(int64_t depth, int64_t hidden, double dropout = 0,
              HiddenActivation activation = HiddenActivation::relu, bool gated = false);

  // x [..., depth] -> [..., depth].
  at::Tensor forward(const at::Tensor& x, const Pass& pass);

 private:
  Linear hidden_{nullptr};
  Linear gate_{nullptr};  // null if not gated
  Linear output_{nullptr};
  double dropout_;
  HiddenActivation activation_;
};

}  // namespace attend
