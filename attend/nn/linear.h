#pragma once

#include <torch/nn/modules/linear.h>

#include <map>
#include <memory>
#include <utility>

#include "attend/nn/pass.h"

namespace attend {

// Whether the processor has instructions for bfloat16 products.
bool multiplies_bfloat16();

// Weights of linear maps that all steps of a recurrence share, for a pass in() it. They are rounded
// to bfloat16 once, if products use it. Backward computes the gradient of a weight with one product
// over all steps. The weights must not change during its lifetime.
class Recurrence {
 public:
  Recurrence();
  ~Recurrence();
  Recurrence(const Recurrence&) = delete;
  Recurrence& operator=(const Recurrence&) = delete;

 private:
  struct Weight;
  friend at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const Pass& pass);

  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    bool half);

  // Keys: weight and bias; the bias may be undefined.
  std::map<std::pair<const c10::TensorImpl*, const c10::TensorImpl*>, std::unique_ptr<Weight>>
      weights_;
};

// x [..., D] W^T + b -> [..., V]; weight [V, D], bias [V] or undefined. Uses the precision and the
// recurrence of the pass. Within LibTorch's autocast and in forward mode it is LibTorch's linear.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Pass& pass);

// [n, D] as bfloat16, padded with rows of zeros to a multiple of 32 (of 128 for more than 512
// rows). Padding limits the number of shapes: LibTorch compiles and caches a product for every new
// shape.
at::Tensor bfloat16_rows(const at::Tensor& rows);

// Product of two matrices on one device, at least one of them bfloat16, with sums in float32.
at::Tensor bfloat16_product(const at::Tensor& a, const at::Tensor& b);

// LibTorch's layer, computed by attend::linear().
class LinearImpl : public torch::nn::LinearImpl {
 public:
  using torch::nn::LinearImpl::LinearImpl;

  at::Tensor forward(const at::Tensor& x, const Pass& pass) {
    return attend::linear(x, weight, bias, pass);
  }
};
TORCH_MODULE(Linear);

// A linear map with Xavier weights (Glorot & Bengio 2010, uniform) and a bias of zeros.
Linear xavier_linear(int64_t from, int64_t to, bool has_bias = true);

}  // namespace attend
