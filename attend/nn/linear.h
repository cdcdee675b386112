#pragma once

#include <torch/nn/modules/linear.h>

#include <map>
#include <memory>
#include <utility>

#include "attend/nn/pass.h"

namespace attend {

// Whether the processor multiplies bfloat16 itself.
bool multiplies_bfloat16();

// The weights of linear maps that the steps of a recurrence apply again and again, in a pass in()
// it: they are rounded once where products are of bfloat16, and backward makes the gradient of a
// weight by one product over all steps. Weights must not change meanwhile.
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

  // By weight and bias, which may be undefined.
  std::map<std::pair<const c10::TensorImpl*, const c10::TensorImpl*>, std::unique_ptr<Weight>>
      weights_;
};

// x [..., D] W^T + b -> [..., V]; weight [V, D], bias [V] or undefined. In the precision and the
// recurrence of the pass, but within LibTorch's autocast and in forward mode LibTorch's own.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Pass& pass);

// [n, D] as bfloat16, with rows of zeros up to a multiple of 32, or of 128 where there are more
// than 512 rows: LibTorch compiles and keeps a product for every shape that it meets.
at::Tensor bfloat16_rows(const at::Tensor& rows);

// The product of two matrices on one device, of which at least one is bfloat16, with sums in
// float32.
at::Tensor bfloat16_product(const at::Tensor& a, const at::Tensor& b);

// LibTorch's layer, computed by linear().
class LinearImpl : public torch::nn::LinearImpl {
 public:
  using torch::nn::LinearImpl::LinearImpl;

  at::Tensor forward(const at::Tensor& x, const Pass& pass) {
    return attend::linear(x, weight, bias, pass);
  }
};
TORCH_MODULE(Linear);

}  // namespace attend
