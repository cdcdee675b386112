#pragma once

#include <ATen/core/Tensor.h>

namespace attend {

struct CausalConvolutionResult {
  at::Tensor output;  // [B, T, C]
  at::Tensor state;   // the last W - 1 inputs, [B, W - 1, C]
};

// Depthwise convolution along the tokens, which reads the current token and W - 1 earlier ones:
// y_tc = a(bias_c + sum_w weight_cw x_(t - W + 1 + w, c)), with a(z) = z sigmoid(z) if `silu`,
// otherwise z. Inputs [B, T, C], weights [C, W], bias [C] or undefined. The state holds the inputs
// before the first token, [B, W - 1, C]; undefined: 0. float32, float64, bfloat16 or float16; all
// tensors have gradients. Error, with the name of the argument, if shapes or types disagree.
CausalConvolutionResult causal_convolution(const at::Tensor& input, const at::Tensor& weight,
                                           const at::Tensor& bias = {},
                                           const at::Tensor& state = {}, bool silu = false);

// The same by tensor operations.
CausalConvolutionResult composed_causal_convolution(const at::Tensor& input,
                                                    const at::Tensor& weight,
                                                    const at::Tensor& bias = {},
                                                    const at::Tensor& state = {},
                                                    bool silu = false);

}  // namespace attend
