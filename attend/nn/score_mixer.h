#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "attend/nn/pass.h"

namespace attend {

// Sizes of a convolution over scores; queries 0: not used.
struct ScoreMixSizes {
  int64_t queries = 0;  // number of last queries, with the own one
  int64_t keys = 11;    // number of keys around the own one; odd
  int64_t heads = 2;    // heads that mix their weights; divides the number of heads
};

// Multi-token attention (Golovneva et al. 2025, 3.1 and 3.2): a convolution over queries and keys,
// and weights that heads share.
//   w = softmax_j(sum_ab kernel_ab s_(i - queries + 1 + a, j - keys / 2 + b)),  w'_h = sum_g mix_gh
//   w_g
// Scores out of the scope of their row count as 0, and get no weight. The norm of the contexts of
// the paper is left out. All weights are formed: a weight depends on scores of other rows, which a
// tile of the kernels does not hold.
//
// scores [B, heads, rows, Tk], -inf out of scope; the last `queries` rows are the queries of the
// call, the others are earlier queries. kernel [heads, a, b]; mix [heads / g, g, g], undefined:
// none. Returns the weights [B, heads, queries, Tk]. Error on shapes that do not fit.
at::Tensor mixed_weights(const at::Tensor& scores, int64_t queries, const at::Tensor& kernel,
                         const at::Tensor& mix);

// The kernels, as parameters. They begin as the score itself and the own head.
class ScoreMixer : public torch::nn::Module {
 public:
  // Error on a size below 1, an even number of keys, or a number of heads that is not divided.
  ScoreMixer(const ScoreMixSizes& sizes, int64_t heads);

  // Contexts [B, heads, Tq, Dv] of the last Tq of `query` [B, heads, rows, D], for key and value
  // [B, key heads, Tk, .]; spec.scope counts from the first row. A watch sees the weights: a call
  // with normaliser none. `output` as in Pass::attention().
  at::Tensor attend(const at::Tensor& query, int64_t queries, const at::Tensor& key,
                    const at::Tensor& value, const AttentionSpec& spec, const at::Tensor& output,
                    const Pass& pass) const;

  // Number of earlier queries that a query needs.
  int64_t rows_before() const { return sizes_.queries - 1; }

 private:
  ScoreMixSizes sizes_;
  at::Tensor kernel_, mix_;
};

}  // namespace attend
