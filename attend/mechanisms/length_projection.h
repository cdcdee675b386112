#pragma once

#include <torch/nn/module.h>

namespace attend {

// Keys and values of any length as a fixed number of them, so that attention over them is linear in
// the length (Linformer, Wang et al. 2020, eq. 7): E x along the positions, with one trainable E
// for all heads. Keys and values usually have a projection each.
//
// Every projected key is a mixture of all positions. There is no causal attention over such keys,
// no window and no weight on one position: attend to them with scope all_keys().
class LengthProjection : public torch::nn::Module {
 public:
  // E [projected, maximum_length] has normal entries of variance 1 / projected. Error unless
  // 1 <= projected <= maximum_length.
  LengthProjection(int64_t maximum_length, int64_t projected);

  // [..., T, D] -> [..., projected, D], from the first T columns of E. lengths [B] int64, the first
  // axis of x: positions from there on are padding and count as 0. Error when T is more than the
  // maximum.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths = {}) const;

 private:
  at::Tensor projection_;  // E
};

}  // namespace attend
