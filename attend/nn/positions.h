#pragma once

#include <torch/nn/module.h>

namespace attend {

// Attention alone does not see order. These encode the position of a token in its vector or by
// turning queries and keys; alibi, buckets, relative_keys and grid (attend/ops/biases.h) do so in
// the scores.

// Which columns of sinusoids are sines: every other one (Vaswani et al. 2017, 3.5), or the first
// half of them, as in tensor2tensor and Marian.
enum class SinusoidOrder { alternating, halves };

// Rows p = offset, offset + 1, ...: column 2 i holds sin(p / 10000^(2 i / depth)), column 2 i + 1
// the cosine (Vaswani et al. 2017, 3.5), or all sines come first. [count, depth]; an odd depth has
// a sine more than cosines. Error when count or offset is negative or depth below 1.
at::Tensor sinusoidal_positions(int64_t count, int64_t depth, int64_t offset = 0,
                                const at::TensorOptions& options = at::kFloat,
                                SinusoidOrder order = SinusoidOrder::alternating);

// Rows and columns of an image; its positions are numbered row by row.
struct GridSize {
  int64_t height = 0;
  int64_t width = 0;
};

// The same in two dimensions (Parmar et al. 2018, 3.1): the first half of the columns encodes the
// row of a pixel, the second its column. [height width, depth]; Error unless depth is even.
at::Tensor sinusoidal_grid(const GridSize& grid, int64_t depth,
                           const at::TensorOptions& options = at::kFloat,
                           SinusoidOrder order = SinusoidOrder::alternating);

// A trained vector per position (Gehring et al. 2017, 3.1), added to the vector there.
class LearnedPositions : public torch::nn::Module {
 public:
  // Sequences of up to `maximum` positions; both 1 or more.
  LearnedPositions(int64_t maximum, int64_t depth);

  // x [..., T, depth] whose first row has position `offset` -> the same with its positions. Error
  // when the last one passes the maximum.
  at::Tensor forward(const at::Tensor& x, int64_t offset = 0) const;

  int64_t maximum() const { return table_.size(0); }

 private:
  at::Tensor table_;
};

// Turns each pair of columns (2 i, 2 i + 1) of the row at position p by the angle
// p base^(-2 i / depth) (Su et al. 2021, eq. 34), so that the product of a turned query and a
// turned key depends on the distance of their positions alone. x [..., T, depth], whose first row
// has position `offset`. Differentiable twice. Error on an odd depth.
at::Tensor rotate(const at::Tensor& x, int64_t offset = 0, double base = 10000);

}  // namespace attend
