#pragma once

#include <torch/nn/modules/linear.h>

#include <map>
#include <memory>
#include <utility>

namespace attend {

// While it lives, the linear maps of this thread multiply float32 inputs and weights as bfloat16,
// forward and backward, and add the products up in float32: results have 8 bits, weights and their
// sums of gradients all 24 (Micikevicius et al. 2018, 3.1). Twice as fast where the processor
// multiplies bfloat16 itself.
class BFloat16Products {
 public:
  explicit BFloat16Products(bool enabled);
  ~BFloat16Products();
  BFloat16Products(const BFloat16Products&) = delete;
  BFloat16Products& operator=(const BFloat16Products&) = delete;

  static bool enabled();

  // Whether the processor multiplies bfloat16 itself.
  static bool supported();

 private:
  bool before_;
};

// While it lives, the linear maps of this thread that the steps of a recurrence apply again and
// again are rounded once where products are of bfloat16, and backward makes the gradient of a
// weight by one product over all steps. Weights must not change meanwhile.
class RecurrenceScope {
 public:
  RecurrenceScope();
  ~RecurrenceScope();
  RecurrenceScope(const RecurrenceScope&) = delete;
  RecurrenceScope& operator=(const RecurrenceScope&) = delete;

 private:
  struct Weight;
  friend at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    bool half);

  RecurrenceScope* before_;
  // By weight and bias, which may be undefined.
  std::map<std::pair<const c10::TensorImpl*, const c10::TensorImpl*>, std::unique_ptr<Weight>>
      weights_;
};

// x [..., D] W^T + b -> [..., V]; weight [V, D], bias [V] or undefined. Heeds BFloat16Products and
// RecurrenceScope, but within LibTorch's autocast and in forward mode is LibTorch's own.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// [n, D] as bfloat16, with rows of zeros up to a multiple of 32, of more than 512 rows to one of
// 128: LibTorch compiles and keeps a product for every shape that it meets.
at::Tensor bfloat16_rows(const at::Tensor& rows);

// The product of two matrices on one device, of which at least one is bfloat16, with sums in
// float32.
at::Tensor bfloat16_product(const at::Tensor& a, const at::Tensor& b);

// LibTorch's layer, computed by linear().
class LinearImpl : public torch::nn::LinearImpl {
 public:
  using torch::nn::LinearImpl::LinearImpl;

  at::Tensor forward(const at::Tensor& x) { return attend::linear(x, weight, bias); }
};
TORCH_MODULE(Linear);

}  // namespace attend
