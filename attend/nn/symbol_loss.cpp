#include "attend/nn/symbol_loss.h"

#include <algorithm>

#include "attend/base/error.h"
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

// The loss of a chunk; adds its gradients to those of all, where there are any. Vectors and weight
// are of one type; sums are formed in the type of the gradients.
double chunk_loss(const Chunk& chunk, const SymbolOutput& output, double smoothing,
                  Tensor vectors_gradient, Gradients* gradients) {
  const auto symbols = static_cast<double>(output.weight.size(0));
  const auto sum_type =
      chunk.vectors.scalar_type() == at::kBFloat16 ? at::kFloat : chunk.vectors.scalar_type();
  Tensor log_p = at::mm(chunk.vectors, output.weight.t()).to(sum_type);
  if (output.bias.defined()) log_p.add_(output.bias);
  log_p = log_p.log_softmax(-1);
  const Tensor index = chunk.target.unsqueeze(1);
  // loss = -(1 - s) log p_target - s / V sum_j log p_j
  double loss = -(1 - smoothing) * log_p.gather(1, index).sum(at::kDouble).item<double>();
  if (smoothing > 0) loss -= smoothing / symbols * log_p.sum(at::kDouble).item<double>();
  if (gradients == nullptr) return loss;
  // dloss/dlogit_j = p_j - (1 - s) [j = target] - s / V
  Tensor slope = log_p.exp_();
  if (smoothing > 0) slope.sub_(smoothing / symbols);
  slope.scatter_add_(1, index, at::full_like(index, smoothing - 1, slope.options()));
  // logit = v W^T + b
  if (gradients->bias.defined()) gradients->bias.add_(slope.sum(0));
  slope = slope.to(chunk.vectors.scalar_type());
  vectors_gradient.copy_(at::mm(slope, output.weight));
  gradients->weight.add_(at::mm(slope.t(), chunk.vectors));
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
    const SymbolOutput output{weight.to(type), bias.value_or(Tensor())};
    const Tensor rows = vectors.to(type);
    Gradients gradients;
    if (with_gradients) {
      gradients.vectors = at::empty_like(vectors);
      gradients.weight = at::zeros_like(weight);
      if (output.bias.defined()) gradients.bias = at::zeros_like(output.bias);
    }
    double loss = 0;
    for (int64_t first = 0; first < vectors.size(0); first += rows_a_chunk) {
      const int64_t count = std::min(rows_a_chunk, vectors.size(0) - first);
      const Chunk chunk{rows.narrow(0, first, count), target.narrow(0, first, count)};
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
  const Tensor used = (target != ignored).nonzero().squeeze(1);
  const bool all = used.size(0) == target.size(0);
  const bool with_gradients =
      at::GradMode::is_enabled() && (vectors.requires_grad() || output.weight.requires_grad());
  const c10::optional<Tensor> bias =
      output.bias.defined() ? c10::optional<Tensor>(output.bias) : c10::nullopt;
  return SymbolLoss::apply(all ? vectors : vectors.index_select(0, used), output.weight, bias,
                           all ? target : target.index_select(0, used), smoothing, with_gradients);
}

}  // namespace attend
