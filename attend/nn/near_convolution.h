#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "attend/nn/feed_forward.h"
#include "attend/nn/linear.h"
#include "attend/nn/norm.h"

namespace attend {

struct NearConvolutionConfig {
  int64_t depth = 0;
  int64_t width = 3;  // odd number of positions that each output reads
  HiddenActivation activation = HiddenActivation::tanh;
  double epsilon = 1e-5;
  double dropout = 0;
};

// norm(x + f(W [input_(t - w) .. input_(t + w)] + b)) at every position t, with zeros past the ends
// and at padding (the layer for neighbouring tokens of DeBERTa-v2). Trained.
class NearConvolution : public torch::nn::Module {
 public:
  // Error if the width is not odd.
  explicit NearConvolution(const NearConvolutionConfig& config);

  // input, x [B, T, depth] -> the same shape. present [B, T] bool; undefined: no padding.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& x, const at::Tensor& present,
                     const Pass& pass);

 private:
  NearConvolutionConfig config_;
  Linear map_{nullptr};  // [depth, width depth]
  std::shared_ptr<Norm> norm_;
};

}  // namespace attend
