#pragma once

#include <torch/nn/module.h>

namespace attend {

// Projects keys and values of any length to a fixed number, which makes attention over them linear
// in the length (Linformer, Wang et al. 2020, eq. 7). Computes E x along the positions, with one
// trainable E for all heads. Keys and values usually have one projection each.
//
// Every projected key is a mixture of all positions. Causal attention, windows and weights of
// single positions are not possible; use scope all_keys().
class LengthProjection : public torch::nn::Module {
 public:
  // The entries of E are normal with variance 1 / projected. Error unless 1 <= projected <=
  // maximum_length.
  LengthProjection(int64_t maximum_length, int64_t projected);

  // [..., T, D] -> [..., projected, D], using the first T columns of E. lengths: [B] int64, B the
  // first axis of x; later positions are padding and count as 0. Error if T exceeds the maximum.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths = {}) const;

 private:
  at::Tensor projection_;  // E
};

}  // namespace attend
