#pragma once

#include <torch/nn/module.h>

#include "attend/nn/rotation.h"

namespace attend {

// Attention by itself does not depend on order. These functions encode positions in token vectors,
// or rotate queries and keys. The biases alibi, buckets, relative_keys and grid
// (attend/ops/biases.h) encode positions in the scores.

// Which columns of sinusoids are sines: every other column (Vaswani et al. 2017, 3.5), or the first
// half, as in tensor2tensor and Marian. fairseq: as halves, but the frequency of column i is
// 10000^(-i / (depth / 2 - 1)), and positions begin with 2.
enum class SinusoidOrder { alternating, halves, fairseq };

// Rows p = offset, offset + 1, ...: column 2 i holds sin(p / 10000^(2 i / depth)), column 2 i + 1
// the cosine (Vaswani et al. 2017, 3.5), or all sines come first. Returns [count, depth]; an odd
// depth has one more sine than cosines. Error if count or offset is negative or depth is below 1;
// fairseq needs an even depth from 4.
at::Tensor sinusoidal_positions(int64_t count, int64_t depth, int64_t offset = 0,
                                const at::TensorOptions& options = at::kFloat,
                                SinusoidOrder order = SinusoidOrder::alternating);

// Size of an image; its positions are numbered row by row.
struct GridSize {
  int64_t height = 0;
  int64_t width = 0;
};

// Sinusoids in two dimensions (Parmar et al. 2018, 3.1): the first half of the columns encodes the
// row of a pixel, the second half its column. [height width, depth]; Error if depth is odd.
at::Tensor sinusoidal_grid(const GridSize& grid, int64_t depth,
                           const at::TensorOptions& options = at::kFloat,
                           SinusoidOrder order = SinusoidOrder::alternating);

// A trained vector per position (Gehring et al. 2017, 3.1), added to the input.
class LearnedPositions : public torch::nn::Module {
 public:
  // `maximum`: the number of positions. Error if an argument is below 1.
  LearnedPositions(int64_t maximum, int64_t depth);

  // x [..., T, depth], first row at position `offset` -> x plus the position vectors. Error if the
  // last position exceeds the maximum.
  at::Tensor forward(const at::Tensor& x, int64_t offset = 0) const;

  int64_t maximum() const { return table_.size(0); }

 private:
  at::Tensor table_;
};

// Rotates each pair of columns (2 i, 2 i + 1) of the row at position p by the angle p base^(-2 i /
// depth) (Su et al. 2021, eq. 34). The product of a rotated query and a rotated key then depends
// only on the distance of their positions. x [..., T, depth], first row at position `offset`.
// Differentiable twice. Error if the depth is odd.
at::Tensor rotate(const at::Tensor& x, int64_t offset = 0, double base = 10000);

// The same with other columns, pairs or frequencies. Columns after turned_columns() stay. `length`:
// number of positions of the whole sequence, used by RotaryRule::dynamic only; 0: up to the last
// row. Error as rotary_frequencies().
at::Tensor rotate(const at::Tensor& x, int64_t offset, const Rotation& rotation,
                  int64_t length = 0);

}  // namespace attend
