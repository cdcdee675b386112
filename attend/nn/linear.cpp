#include "attend/nn/linear.h"

#include <torch/csrc/autograd/custom_function.h>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

thread_local bool bfloat16_products = false;

class BFloat16Linear : public torch::autograd::Function<BFloat16Linear> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& weight, const c10::optional<Tensor>& bias) {
    const Tensor rows = bfloat16_rows(x.reshape({-1, x.size(-1)}));
    const Tensor matrix = weight.to(at::kBFloat16);
    context->save_for_backward({rows, matrix});
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["bias"] = bias.has_value();
    const int64_t count = x.numel() / x.size(-1);
    Tensor y = bfloat16_product(rows, matrix.t()).narrow(0, 0, count).to(at::kFloat);
    if (bias) y.add_(*bias);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    return y.view(sizes);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (at::GradMode::is_enabled())
      fail(
          "[linear] bfloat16 products have no second derivative; differentiate them once, without "
          "create_graph, or compute in float32");
    const auto saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].reshape({-1, gradients[0].size(-1)});
    const Tensor slope = bfloat16_rows(gradient);
    // y = x W^T + b
    Tensor x, weight, bias;
    if (context->needs_input_grad(0))
      x = bfloat16_product(slope, saved[1])
              .narrow(0, 0, gradient.size(0))
              .to(at::kFloat)
              .view(context->saved_data["sizes"].toIntVector());
    if (context->needs_input_grad(1)) weight = bfloat16_product(slope.t(), saved[0]).to(at::kFloat);
    if (context->saved_data["bias"].toBool()) bias = gradient.sum(0);
    return {x, weight, bias};
  }
};

}  // namespace

BFloat16Products::BFloat16Products(bool enabled) : before_(bfloat16_products) {
  bfloat16_products = enabled;
}

BFloat16Products::~BFloat16Products() { bfloat16_products = before_; }

bool BFloat16Products::supported() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

bool BFloat16Products::enabled() { return bfloat16_products; }

Tensor bfloat16_rows(const Tensor& rows) {
  constexpr int64_t multiple = 128;
  const int64_t count = rows.size(0);
  const int64_t whole = (count + multiple - 1) / multiple * multiple;
  Tensor result = at::empty({whole, rows.size(1)}, rows.options().dtype(at::kBFloat16));
  result.narrow(0, 0, count).copy_(rows);
  result.narrow(0, count, whole - count).zero_();
  return result;
}

Tensor bfloat16_product(const Tensor& a, const Tensor& b) {
  // Elsewhere on the CPU, LibTorch rounds every partial sum to 8 bits.
  if (BFloat16Products::supported() || !a.is_cpu()) return at::mm(a, b);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!bfloat16_products || x.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat ||
      x.numel() == 0)
    return at::linear(x, weight, bias);
  return BFloat16Linear::apply(x, weight,
                               bias.defined() ? c10::optional<Tensor>(bias) : c10::nullopt);
}

}  // namespace attend
