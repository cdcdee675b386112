#pragma once

#include <ATen/ATen.h>

namespace attend {

struct CausalConvolutionResult {
  at::Tensor output;  // [B, T, C]
  at::Tensor state;   // the last W - 1 inputs, [B, W - 1, C]
};

// Depthwise convolution over the tokens: y_t = bias + sum_w weight_w x_(t - W + 1 + w), then SiLU
// if `silu`. x [B, T, C], weight [C, W], bias [C] or undefined. `state` [B, W - 1, C]: the inputs
// before the first token; undefined: 0.
CausalConvolutionResult causal_convolution(const at::Tensor& x, const at::Tensor& weight,
                                           const at::Tensor& bias, const at::Tensor& state,
                                           bool silu);

}  // namespace attend
