#include "attend/nn/causal_convolution.h"

namespace attend {

using at::Tensor;

CausalConvolutionResult causal_convolution(const Tensor& x, const Tensor& weight,
                                           const Tensor& bias, const Tensor& state, bool silu) {
  const int64_t tokens = x.size(1), width = weight.size(1);
  const Tensor before =
      state.defined() ? state : at::zeros({x.size(0), width - 1, x.size(2)}, x.options());
  const Tensor all = at::cat({before, x}, 1);
  Tensor sum = all.narrow(1, 0, tokens) * weight.select(1, 0);
  for (int64_t w = 1; w < width; ++w) sum = sum + all.narrow(1, w, tokens) * weight.select(1, w);
  if (bias.defined()) sum = sum + bias;
  // x sigmoid(x)
  if (silu) sum = sum * 0.5 * ((sum * 0.5).tanh() + 1);
  return {sum, all.narrow(1, tokens, width - 1).clone()};
}

}  // namespace attend
