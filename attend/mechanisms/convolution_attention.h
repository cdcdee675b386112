#pragma once

#include <torch/nn/modules/conv.h>

#include "attend/nn/positions.h"

namespace attend {

// A convolution as self-attention over pixels (Cordonnier et al. 2020, theorem 1), with one head
// per kernel position. The scores of head h depend only on the distance of two pixels: -alpha_h
// |delta - Delta_h|^2, delta = (y_j - y_i, x_j - x_i) (their eq. 9). Softmax turns them into weight
// 1 for the pixel at Delta_h and 0 for the others. The kernel slice at this position projects the
// values. Unlike a convolution, the reach is trained: alpha and Delta are parameters; heads may
// widen and move anywhere on the image.
//
// Parameters: sharpness [heads] (alpha), centres [heads, 2] (Delta: row, column), projection
// [heads, in, out] and bias [out].
class ConvolutionAttention : public torch::nn::Module {
 public:
  // weight: [out, in, height, width]; bias: [out] or undefined (0). Both kernel sides must be odd:
  // Error otherwise. exp(-sharpness) is the relative weight of the neighbours of the pixel at
  // Delta: 46 makes it vanish in float64. Smaller values train sooner: alpha and Delta receive a
  // gradient only if more than one pixel has weight.
  explicit ConvolutionAttention(const at::Tensor& weight, const at::Tensor& bias = {},
                                double sharpness = 46);

  // Converts a module. Error unless stride and dilation are 1, there is one group, and zero padding
  // keeps the image size.
  explicit ConvolutionAttention(const torch::nn::Conv2d& convolution, double sharpness = 46);

  // x [B, in, height, width] -> [B, out, height, width]. Before training equal to conv2d(x, weight,
  // bias) with stride 1 and zero padding around the image. Differentiable twice.
  at::Tensor forward(const at::Tensor& x) const;

  int64_t heads() const { return sharpness_.size(0); }

 private:
  at::Tensor sharpness_, centres_, projection_, bias_;
  GridSize border_;  // zero pixels on each side, which Delta may point to
};

// -alpha |delta - Delta|^2 at every distance on the grid, as the table of a grid() bias. sharpness
// [heads] and centres [heads, 2] -> [heads, 2 height - 1, 2 width - 1]; all three may lack the
// heads axis.
at::Tensor distance_scores(const at::Tensor& sharpness, const at::Tensor& centres,
                           const GridSize& grid);

}  // namespace attend
