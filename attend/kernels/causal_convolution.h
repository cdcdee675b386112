#pragma once

#include <cstdint>

// Causal depthwise convolution, with which layers of linear recurrences begin (ONNX opset 27,
// CausalConvWithState).

namespace attend::kernels {

// y_tc = a(bias_c + sum_w weight_cw x_(t - width + 1 + w, c)). Before the first token, x is the
// state. T is float or double. Rows of channels are contiguous.
template <class T>
struct CausalConvolution {
  int64_t batch = 1;
  int64_t tokens = 0;
  int64_t channels = 0;
  int64_t width = 0;         // at least 1
  const T* input = nullptr;  // [batch, tokens, channels]
  int64_t batch_stride = 0, token_stride = 0;
  const T* weight = nullptr;  // [channels, width]
  const T* bias = nullptr;    // [channels]; null: 0
  const T* state = nullptr;   // [batch, width - 1, channels]; null: 0
  bool silu = false;          // a(z) = z sigmoid(z), otherwise z
};

// output: [batch, tokens, channels]; last: the last width - 1 inputs, shape of `state`, or null.
// threads: 0 uses the number of OpenMP. Results are bit-identical for any number. Throws
// attend::Error on sizes that do not fit.
template <class T>
void causal_convolution(const CausalConvolution<T>& problem, T* output, T* last, int threads = 0);

// Contiguous outputs of the backward pass, overwritten; null: not written.
template <class T>
struct CausalConvolutionGradients {
  T* input = nullptr;   // [batch, tokens, channels]
  T* weight = nullptr;  // [channels, width]
  T* bias = nullptr;    // [channels]
  T* state = nullptr;   // [batch, width - 1, channels]
};

// grad_output: [batch, tokens, channels]; grad_last: shape of `state`, or null for 0.
template <class T>
void causal_convolution_backward(const CausalConvolution<T>& problem, const T* grad_output,
                                 const T* grad_last, const CausalConvolutionGradients<T>& gradients,
                                 int threads = 0);

}  // namespace attend::kernels
