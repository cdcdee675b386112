#pragma once

#include <torch/nn/modules/conv.h>

#include "attend/nn/positions.h"

namespace attend {

// The self-attention over pixels that a convolution is (Cordonnier et al. 2020, theorem 1): one
// head for each place of the kernel. Head h ignores what pixels hold and scores them by their
// distance alone, -alpha_h |delta - Delta_h|^2, delta = (y_j - y_i, x_j - x_i) (their eq. 9), which
// softmax turns into a weight of 1 for the pixel at Delta_h and 0 for the others; the values are
// projected by the kernel's slice at that place. Unlike the convolution's, the reach is trained:
// alpha and Delta are parameters, so that heads may widen and move anywhere on the image.
//
// Parameters: sharpness [heads] (alpha), centres [heads, 2] (Delta: row, column), projection
// [heads, in, out] and bias [out].
class ConvolutionAttention : public torch::nn::Module {
 public:
  // weight [out, in, height, width], bias [out] or undefined (0). Both sides of the kernel must be
  // odd: Error otherwise. exp(-sharpness) is what a neighbour of the pixel at Delta weighs: 46
  // leaves nothing of it in float64. Smaller ones train sooner: alpha and Delta have a gradient
  // where more than one pixel weighs something.
  explicit ConvolutionAttention(const at::Tensor& weight, const at::Tensor& bias = {},
                                double sharpness = 46);

  // From a module, whose options are checked: stride 1, dilation 1, one group, and zeros around the
  // image that keep its size. Error otherwise.
  explicit ConvolutionAttention(const torch::nn::Conv2d& convolution, double sharpness = 46);

  // x [B, in, height, width] -> [B, out, height, width]: conv2d(x, weight, bias) with stride 1 and
  // zeros around the image, until trained. Differentiable twice.
  at::Tensor forward(const at::Tensor& x) const;

  int64_t heads() const { return sharpness_.size(0); }

 private:
  at::Tensor sharpness_, centres_, projection_, bias_;
  GridSize border_;  // pixels of 0 on each side, which Delta may point to
};

// -alpha |delta - Delta|^2 at every distance on the grid, the table of a grid() bias: sharpness
// [heads] and centres [heads, 2] -> [heads, 2 height - 1, 2 width - 1], all three also without
// heads.
at::Tensor distance_scores(const at::Tensor& sharpness, const at::Tensor& centres,
                           const GridSize& grid);

}  // namespace attend
