#include "attend/nn/linear.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/init.h>

#include "attend/base/error.h"
#include "attend/ops/kernel_tensors.h"

namespace attend {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = c10::optional<Tensor>;

// State that all products with one weight share.
struct SharedWeight : torch::CustomClassHolder {
  SharedWeight(const Tensor& weight, bool is_half)
      : half(is_half), matrix(is_half ? weight.detach().to(at::kBFloat16) : weight.detach()) {}

  Tensor product(const Tensor& a, const Tensor& b) const {
    return half ? bfloat16_product(a, b).to(at::kFloat) : at::mm(a, b);
  }

  bool half;      // products use bfloat16
  Tensor matrix;  // the weight in the dtype of the products, [V, D]
  // Per product that backward has passed: inputs [n, D], gradients of outputs [n, V], and sums of
  // these gradients [V].
  variable_list rows, slopes, bias_slopes;
};

namespace {

// [..., D] -> [n, D]
Tensor as_rows(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

Tensor joined(const variable_list& rows) { return rows.size() == 1 ? rows[0] : at::cat(rows); }

c10::intrusive_ptr<SharedWeight> shared_of(const AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<SharedWeight>(
      context->saved_data.at("shared").toCapsule());
}

// Passes a weight and a bias to products. Its backward runs after the backward of all products.
struct ShareWeight : torch::autograd::Function<ShareWeight> {
  static variable_list forward(AutogradContext* context, const Tensor& weight, const Optional& bias,
                               const c10::intrusive_ptr<SharedWeight>& shared) {
    context->saved_data["shared"] = c10::IValue::make_capsule(shared);
    context->set_materialize_grads(false);
    if (!bias) return {weight.detach()};
    return {weight.detach(), bias->detach()};
  }

  // Products that are differentiated again return their own gradients (`upstream`).
  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const auto shared = shared_of(context);
    variable_list gradients = {upstream[0], upstream.size() > 1 ? upstream[1] : Tensor(), {}};
    const auto add = [&](size_t index, const Tensor& more) {
      Tensor& sum = gradients[index];
      sum = sum.defined() ? sum + more : more;
    };
    // y = x W^T + b, with the rows of all products concatenated
    if (!shared->slopes.empty() && context->needs_input_grad(0))
      add(0, shared->product(joined(shared->slopes).t(), joined(shared->rows)));
    for (const Tensor& slopes : shared->bias_slopes) add(1, slopes);
    shared->rows.clear();
    shared->slopes.clear();
    shared->bias_slopes.clear();
    return gradients;
  }
};

struct Product : torch::autograd::Function<Product> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Optional& bias, const c10::intrusive_ptr<SharedWeight>& shared) {
    const Tensor flat = as_rows(x);
    const Tensor rows = shared->half ? bfloat16_rows(flat) : flat;
    context->save_for_backward({shared->half ? rows : x, weight});
    context->saved_data["shared"] = c10::IValue::make_capsule(shared);
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["bias"] = bias.has_value();
    Tensor y = shared->product(rows, shared->matrix.t()).narrow(0, 0, flat.size(0));
    if (bias) y.add_(*bias);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    return y.view(sizes);
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const auto shared = shared_of(context);
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = as_rows(upstream[0]), rows = as_rows(saved[0]);
    const std::vector<int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const bool has_bias = context->saved_data["bias"].toBool();
    // y = x W^T + b
    if (at::GradMode::is_enabled()) {
      if (shared->half)
        fail(
            "[linear] bfloat16 products have no second derivative; differentiate them once, "
            "without create_graph, or compute in float32");
      return {at::mm(gradient, saved[1]).view(sizes), at::mm(gradient.t(), rows),
              has_bias ? gradient.sum(0) : Tensor(), Tensor()};
    }
    const Tensor slopes = shared->half ? bfloat16_rows(gradient) : gradient;
    Tensor x;
    if (context->needs_input_grad(0))
      x = shared->product(slopes, shared->matrix).narrow(0, 0, gradient.size(0)).view(sizes);
    if (context->needs_input_grad(1)) {
      shared->rows.push_back(rows);
      shared->slopes.push_back(slopes);
    }
    if (has_bias && context->needs_input_grad(2)) shared->bias_slopes.push_back(gradient.sum(0));
    return {x, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

struct Recurrence::Weight {
  Weight(const Tensor& weight, const Tensor& bias, bool half)
      : kept({weight, bias}),
        shared(c10::make_intrusive<SharedWeight>(weight, half)),
        passed(ShareWeight::apply(weight, bias.defined() ? Optional(bias) : c10::nullopt, shared)) {
  }

  Tensor product(const Tensor& x) const {
    return Product::apply(x, passed[0], passed.size() > 1 ? Optional(passed[1]) : c10::nullopt,
                          shared);
  }

  variable_list kept;  // keeps the keys' addresses from being reused
  c10::intrusive_ptr<SharedWeight> shared;
  variable_list passed;
};

Recurrence::Recurrence() = default;

Recurrence::~Recurrence() = default;

bool multiplies_bfloat16() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

Tensor bfloat16_rows(const Tensor& rows) {
  const int64_t count = rows.size(0);
  const int64_t multiple = count > 512 ? 128 : 32;
  const int64_t whole = (count + multiple - 1) / multiple * multiple;
  Tensor result = at::empty({whole, rows.size(1)}, rows.options().dtype(at::kBFloat16));
  result.narrow(0, 0, count).copy_(rows);
  result.narrow(0, count, whole - count).zero_();
  return result;
}

Tensor bfloat16_product(const Tensor& a, const Tensor& b) {
  // Without these instructions, LibTorch on the CPU rounds every partial sum to 8 bits.
  if (multiplies_bfloat16() || !a.is_cpu()) return at::mm(a, b);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

Tensor Recurrence::linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool half) {
  std::unique_ptr<Weight>& known =
      weights_[{weight.unsafeGetTensorImpl(), bias.unsafeGetTensorImpl()}];
  if (known == nullptr || known->shared->half != half)
    known = std::make_unique<Weight>(weight, bias, half);
  return known->product(x);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const Pass& pass) {
  const bool half =
      pass.bfloat16 && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat;
  const bool recurs = pass.recurrence != nullptr && at::GradMode::is_enabled();
  const bool is_plain = !half && !recurs;
  if (is_plain || x.numel() == 0 || autocast_enabled() || has_forward_gradient(x) ||
      has_forward_gradient(weight) || has_forward_gradient(bias))
    return at::linear(x, weight, bias);
  if (recurs) return pass.recurrence->linear(x, weight, bias, half);
  return Recurrence::Weight(weight, bias, half).product(x);
}

Linear xavier_linear(int64_t from, int64_t to, bool has_bias) {
  Linear made(torch::nn::LinearOptions(from, to).bias(has_bias));
  torch::nn::init::xavier_uniform_(made->weight);
  if (has_bias) torch::nn::init::zeros_(made->bias);
  return made;
}

}  // namespace attend
