#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "attend/nn/pass.h"

namespace attend {

// Root-mean-square normalisation of the outputs [.., depth] that sublayers attend to, without a
// weight: the query can hold it. 1e-6 is added to the mean square.
at::Tensor depth_keys(const at::Tensor& outputs);

// Attention residuals (Kimi Team 2026, arXiv 2603.15031): instead of the sum of all earlier
// outputs, sublayer l reads their mean with weights of its own, per position:
//   x_l = sum_{i < l} a_li v_i,  a_li = softmax_i(w_l . v_i / rms(v_i))
// v_0 is the input of the first sublayer, v_i the output of sublayer i; the last read gives the
// output of all. w_l is trained and starts at 0, the plain mean. With blocks of B sublayers, the
// outputs within a block are summed first, so that a sublayer reads the sums of whole blocks and of
// its own block so far.
class DepthAttention : public torch::nn::Module {
 public:
  // `sublayers` of vectors of `depth`, `block` sublayers per block. Error on a size below 1.
  DepthAttention(int64_t depth, int64_t sublayers, int64_t block);

  // The outputs of one computation.
  class Outputs {
   public:
    // x [B, T, depth]: input of the first sublayer. `reader` must outlive the outputs.
    Outputs(const DepthAttention& reader, const at::Tensor& x);

    // Adds the output of the next sublayer.
    void add(const at::Tensor& output);
    // Returns the input of the next sublayer, or after the last one the output of all: [B, T,
    // depth].
    at::Tensor read(const Pass& pass) const;

   private:
    void keep(const at::Tensor& sum);

    const DepthAttention& reader_;
    int64_t sublayers_ = 0;                // number so far
    std::vector<at::Tensor> sums_, keys_;  // whole blocks and the open one
  };

 private:
  int64_t block_;
  at::Tensor queries_;  // [sublayers, depth]; row l - 1 reads after l sublayers
};

}  // namespace attend
