#include "attend/decode/batch_invariance.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <vector>

#include "attend/kernels/row_products.h"

namespace attend {
namespace {

using at::Tensor;

// LibTorch reserves this key for external code and registers nothing under it. It belongs to no
// backend and precedes them all; calls are dispatched here only while a guard includes it. This
// breaks if
// - another library in the process registers operators under the key (torchdistx does);
// - LibTorch drops the key, which does not compile, or moves it after the backends;
// - a layer computes its products by an operator that is not registered below, for example one that
//   fuses a whole recurrence.
// tests/decode/batch_invariance_test.cpp detects each case.
constexpr auto invariant_key = c10::DispatchKey::DeferredInit;

// During its lifetime calls bypass the key and reach LibTorch's own code.
class PastKeyGuard {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{invariant_key};
};

bool is_plain(const Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.layout() == at::kStrided && !x.is_neg();
}

bool can_be_ordered(const Tensor& a, const Tensor& b) {
  return is_plain(a) && is_plain(b) && !at::GradMode::is_enabled();
}

// Whether a matrix is stored column by column: the transposed weight of a layer.
bool by_columns(const Tensor& b) { return b.stride(0) == 1 && b.stride(1) >= b.size(0); }

// out [n, m] = a [n, k] b [k, m] + start [m]; an undefined start adds nothing.
void multiply(const Tensor& a, const Tensor& b, const Tensor& start, const Tensor& out) {
  const Tensor left = a.stride(1) == 1 ? a : a.contiguous();
  const bool columns = by_columns(b);
  const Tensor right = columns || b.stride(1) == 1 ? b : b.contiguous();
  kernels::row_products({.rows = a.size(0),
                         .columns = b.size(1),
                         .depth = a.size(1),
                         .a = left.data_ptr<float>(),
                         .a_stride = left.stride(0),
                         .b = right.data_ptr<float>(),
                         .b_stride = right.stride(columns ? 1 : 0),
                         .b_by_columns = columns,
                         .start = start.defined() ? start.data_ptr<float>() : nullptr,
                         .out = out.data_ptr<float>(),
                         .out_stride = out.stride(0)});
}

Tensor mm(const Tensor& a, const Tensor& b) {
  const PastKeyGuard past;
  if (!can_be_ordered(a, b) || a.size(1) != b.size(0)) return at::mm(a, b);
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  multiply(a, b, {}, out);
  return out;
}

Tensor addmm(const Tensor& start, const Tensor& a, const Tensor& b, const at::Scalar& beta,
             const at::Scalar& alpha) {
  const PastKeyGuard past;
  // Layers add only a bias.
  const bool is_bias = is_plain(start) && start.dim() == 1 && start.is_contiguous() &&
                       b.dim() == 2 && start.size(0) == b.size(1) && beta.equal(1) &&
                       alpha.equal(1);
  if (!is_bias || !can_be_ordered(a, b) || a.size(1) != b.size(0))
    return at::addmm(start, a, b, beta, alpha);
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  multiply(a, b, start, out);
  return out;
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  const PastKeyGuard past;
  if (!can_be_ordered(a, b) || a.size(0) != b.size(0) || a.size(2) != b.size(1))
    return at::bmm(a, b);
  Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  // LibTorch copies, and thereby transposes, the right operand in some batches but not in others.
  const Tensor right = b.contiguous();
  for (int64_t i = 0; i < a.size(0); ++i) multiply(a[i], right[i], {}, out[i]);
  return out;
}

// LibTorch 2 checks whether the weight is differentiated before it merges several products into
// one.
Tensor matmul(c10::DispatchKeySet keys, const Tensor& a, const Tensor& b) {
  if (at::GradMode::is_enabled() || a.dim() < 3 || b.dim() != 2)
    return at::_ops::matmul::redispatch(keys.remove(invariant_key), a, b);
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(1);
  return at::mm(a.flatten(0, -2), b).view(sizes);
}

Tensor mv(const Tensor& a, const Tensor& b) {
  const PastKeyGuard past;
  if (!can_be_ordered(a, b) || a.size(1) != b.size(0)) return at::mv(a, b);
  Tensor out = at::empty({a.size(0), 1}, a.options());
  multiply(a, b.contiguous().unsqueeze(0).t(), {}, out);
  return out.squeeze(1);
}

// LibTorch's sigmoid uses another exponential for the last numbers of an array, which fill no
// vector.
Tensor sigmoid(const Tensor& x) {
  const PastKeyGuard past;
  if (!is_plain(x)) return at::sigmoid(x);
  return x.neg().exp_().add_(1).reciprocal_();
}

Tensor& sigmoid_(Tensor& x) { return x.copy_(attend::sigmoid(x)); }

// The sizes have different types in LibTorch 1.13 and 2.x.
template <class... Sizes>
Tensor convolution(const Tensor& x, const Tensor& weight, const c10::optional<Tensor>& bias,
                   Sizes... sizes) {
  const PastKeyGuard past;
  const auto convolved = [&](const Tensor& images) {
    return at::_ops::convolution::call(images, weight, bias, sizes...);
  };
  if (!can_be_ordered(x, weight) || x.size(0) < 2) return convolved(x);
  std::vector<Tensor> each;
  each.reserve(static_cast<size_t>(x.size(0)));
  for (const Tensor& image : x.split(1)) each.push_back(convolved(image));
  return at::cat(each);
}

}  // namespace

BatchInvariantGuard::BatchInvariantGuard() : guard_(invariant_key) {}

}  // namespace attend

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  library.impl("mm", attend::mm);
  library.impl("addmm", attend::addmm);
  library.impl("bmm", attend::bmm);
  library.impl("matmul", attend::matmul);
  library.impl("mv", attend::mv);
  library.impl("sigmoid", attend::sigmoid);
  library.impl("sigmoid_", attend::sigmoid_);
  library.impl("convolution", static_cast<at::_ops::convolution::schema*>(attend::convolution));
}
