#include "attend/nn/symbol_loss.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/kernels/cross_entropy.h"
#include "attend/nn/linear.h"

namespace attend {
namespace {

using at::Tensor;

// Enough rows that adding to the gradient of the matrix costs little beside the products.
constexpr int64_t rows_a_chunk = 256;

struct Chunk {
  Tensor vectors, target;  // [n, D], [n]
};

struct Gradients {
  Tensor vectors, weight, bias;
};

// The losses of the first rows of logits, one a target, which their slopes replace; adds these to
// those of the bias.
template <class S>
double losses(const Tensor& logits, const Tensor& target, const SymbolOutput& output,
              double smoothing, const Gradients* gradients) {
  using Sum = kernels::Compute<S>;
  kernels::CrossEntropy<S> problem;
  problem.rows = target.size(0);
  problem.symbols = logits.size(1);
  problem.logits = static_cast<S*>(logits.data_ptr());
  if (output.bias.defined()) problem.bias = output.bias.data_ptr<Sum>();
  problem.target = target.data_ptr<int64_t>();
  problem.smoothing = smoothing;
  problem.with_slopes = gradients != nullptr;
  if (gradients != nullptr && gradients->bias.defined())
    problem.bias_slopes = gradients->bias.data_ptr<Sum>();
  return kernels::cross_entropy(problem);
}

// The loss of a chunk; adds its gradients to those of all, where there are any. The weight may be
// bfloat16; the bias and sums are float32 then.
double chunk_loss(const Chunk& chunk, const SymbolOutput& output, double smoothing,
                  const Tensor& vectors_gradient, const Gradients* gradients) {
  const bool half = output.weight.scalar_type() == at::kBFloat16;
  const int64_t count = chunk.target.size(0);
  const Tensor vectors = half ? bfloat16_rows(chunk.vectors) : chunk.vectors;
  const Tensor logits = at::mm(vectors, output.weight.t());
  const auto type = logits.scalar_type();
  const auto of = [&]<class S>() {
    return losses<S>(logits, chunk.target, output, smoothing, gradients);
  };
  const double loss = type == at::kBFloat16 ? of.template operator()<kernels::BFloat16>()
                      : type == at::kFloat  ? of.template operator()<float>()
                                            : of.template operator()<double>();
  if (gradients == nullptr) return loss;
  // logit = v W^T + b
  logits.narrow(0, count, logits.size(0) - count).zero_();
  vectors_gradient.copy_(at::mm(logits, output.weight).narrow(0, 0, count));
  gradients->weight.add_(at::mm(logits.t(), vectors));
  return loss;
}

class SymbolLoss : public torch::autograd::Function<SymbolLoss> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& vectors,
                        const Tensor& weight, const c10::optional<Tensor>& bias,
                        const Tensor& target, double smoothing, bool with_gradients) {
    const auto type = BFloat16Products::enabled() && vectors.scalar_type() == at::kFloat
                          ? at::kBFloat16
                          : vectors.scalar_type();
    const SymbolOutput output{weight.to(type), bias ? bias->contiguous() : Tensor()};
    Gradients gradients;
    if (with_gradients) {
      gradients.vectors = at::empty_like(vectors);
      gradients.weight = at::zeros_like(weight);
      if (output.bias.defined()) gradients.bias = at::zeros_like(output.bias);
    }
    double loss = 0;
    for (int64_t first = 0; first < vectors.size(0); first += rows_a_chunk) {
      const int64_t count = std::min(rows_a_chunk, vectors.size(0) - first);
      const Chunk chunk{vectors.narrow(0, first, count), target.narrow(0, first, count)};
      loss += chunk_loss(chunk, output, smoothing,
                         with_gradients ? gradients.vectors.narrow(0, first, count) : Tensor(),
                         with_gradients ? &gradients : nullptr);
    }
    context->save_for_backward({gradients.vectors, gradients.weight, gradients.bias});
    return at::scalar_tensor(loss, vectors.options());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto scaled = [&](const Tensor& x) { return x.defined() ? x * gradients[0] : x; };
    return {scaled(saved[0]), scaled(saved[1]), scaled(saved[2]), {}, {}, {}};
  }
};

}  // namespace

Tensor SymbolOutput::logits(const Tensor& vectors) const {
  return at::linear(vectors, weight, bias);
}

Tensor symbol_loss(const Tensor& vectors, const SymbolOutput& output, const Tensor& target,
                   double smoothing, int64_t ignored) {
  if (vectors.dim() != 2 || target.dim() != 1 || vectors.size(0) != target.size(0) ||
      vectors.size(1) != output.weight.size(1))
    fail(
        "[symbol loss] vectors have shape [{}], weight [{}], target [{}]; [N, D], [V, D] and [N] "
        "are wanted",
        fmt::join(vectors.sizes(), ", "), fmt::join(output.weight.sizes(), ", "),
        fmt::join(target.sizes(), ", "));
  const bool fused = vectors.is_cpu() &&
                     (vectors.scalar_type() == at::kFloat || vectors.scalar_type() == at::kDouble);
  if (!fused)
    return at::cross_entropy_loss(output.logits(vectors), target, {}, at::Reduction::Sum, ignored,
                                  smoothing);
  const Tensor used = (target != ignored).nonzero().squeeze(1);
  const bool all = used.size(0) == target.size(0);
  const Tensor symbols = all ? target.contiguous() : target.index_select(0, used);
  if (symbols.numel() > 0 &&
      (symbols.min().item<int64_t>() < 0 || symbols.max().item<int64_t>() >= output.weight.size(0)))
    fail("[symbol loss] the target holds {} .. {}; 0 .. {} are wanted",
         symbols.min().item<int64_t>(), symbols.max().item<int64_t>(), output.weight.size(0) - 1);
  const bool with_gradients =
      at::GradMode::is_enabled() && (vectors.requires_grad() || output.weight.requires_grad());
  const c10::optional<Tensor> bias =
      output.bias.defined() ? c10::optional<Tensor>(output.bias) : c10::nullopt;
  return SymbolLoss::apply(all ? vectors : vectors.index_select(0, used), output.weight, bias,
                           symbols, smoothing, with_gradients);
}

}  // namespace attend
