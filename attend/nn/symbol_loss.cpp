#include "attend/nn/symbol_loss.h"

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// Logits of one chunk stay in the second-level cache beside their gradient, and are enough rows for
// a product at full speed.
constexpr int64_t logits_a_chunk = 1 << 19;
constexpr int64_t least_rows = 48;

struct Chunk {
  Tensor vectors, target;  // [n, D], [n]
};

struct Gradients {
  Tensor vectors, weight, bias;
};

// The loss of a chunk; adds its gradients to those of all, where there are any.
double chunk_loss(const Chunk& chunk, const SymbolOutput& output, double smoothing,
                  Tensor vectors_gradient, Gradients* gradients) {
  const auto symbols = static_cast<double>(output.weight.size(0));
  Tensor log_p = output.logits(chunk.vectors).log_softmax(-1);
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
  at::mm_out(vectors_gradient, slope, output.weight);
  gradients->weight.addmm_(slope.t(), chunk.vectors);
  if (gradients->bias.defined()) gradients->bias.add_(slope.sum(0));
  return loss;
}

class SymbolLoss : public torch::autograd::Function<SymbolLoss> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& vectors,
                        const Tensor& weight, const c10::optional<Tensor>& bias,
                        const Tensor& target, double smoothing, bool with_gradients) {
    const SymbolOutput output{weight, bias.value_or(Tensor())};
    Gradients gradients;
    if (with_gradients) {
      gradients.vectors = at::empty_like(vectors);
      gradients.weight = at::zeros_like(weight);
      if (output.bias.defined()) gradients.bias = at::zeros_like(output.bias);
    }
    const int64_t rows = std::max(least_rows, logits_a_chunk / weight.size(0));
    double loss = 0;
    for (int64_t first = 0; first < vectors.size(0); first += rows) {
      const int64_t count = std::min(rows, vectors.size(0) - first);
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
