#include "attend/nn/token_loss.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "attend/base/error.h"
#include "attend/kernels/cross_entropy.h"
#include "attend/nn/linear.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/twin_gradients.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

// Enough rows to make the cost of adding to the weight gradient small compared with the products.
constexpr int64_t rows_per_chunk = 256;

struct Chunk {
  Tensor vectors, target;  // [n, D], [n]
};

struct LabelSmoothing {
  double share;
  int64_t first;
};

// A tensor is undefined if its gradient is not needed.
struct Gradients {
  Tensor vectors, weight, bias;

  bool wanted() const { return vectors.defined() || weight.defined() || bias.defined(); }
};

// Sum of the losses of the first rows of `logits`, one row per target. Replaces logits by their
// gradients, and adds these to the bias gradient.
template <class S>
double losses(const Tensor& logits, const Tensor& target, const TokenOutput& output,
              const LabelSmoothing& smoothing, const Gradients& gradients) {
  using Sum = kernels::Compute<S>;
  kernels::CrossEntropy<S> problem;
  problem.rows = target.size(0);
  problem.tokens = logits.size(1);
  problem.logits = pointer_of<S>(logits);
  problem.bias = pointer_of<const Sum>(output.bias);
  problem.target = pointer_of<const int64_t>(target);
  problem.smoothing = smoothing.share;
  problem.first = smoothing.first;
  problem.with_slopes = gradients.wanted();
  problem.bias_slopes = pointer_of<Sum>(gradients.bias);
  return kernels::cross_entropy(problem);
}

// The loss of a chunk that begins at row `first`; accumulates its gradients. The weight may be
// bfloat16; bias and sums are then float32.
double chunk_loss(const Chunk& chunk, int64_t first, const TokenOutput& output,
                  const LabelSmoothing& smoothing, const Gradients& gradients) {
  const bool half = output.weight.scalar_type() == at::kBFloat16;
  const int64_t count = chunk.target.size(0);
  const Tensor vectors = half ? bfloat16_rows(chunk.vectors) : chunk.vectors;
  const auto product = [half](const Tensor& a, const Tensor& b) {
    return half ? bfloat16_product(a, b) : at::mm(a, b);
  };
  const Tensor logits = product(vectors, output.weight.t());
  const auto type = logits.scalar_type();
  const auto loss_of = [&]<class S>() {
    return losses<S>(logits, chunk.target, output, smoothing, gradients);
  };
  const double loss = type == at::kBFloat16 ? loss_of.template operator()<kernels::BFloat16>()
                      : type == at::kFloat  ? loss_of.template operator()<float>()
                                            : loss_of.template operator()<double>();
  if (!gradients.wanted()) return loss;
  // logit = v W^T + b
  logits.narrow(0, count, logits.size(0) - count).zero_();
  if (gradients.vectors.defined())
    gradients.vectors.narrow(0, first, count)
        .copy_(product(logits, output.weight).narrow(0, 0, count));
  if (gradients.weight.defined()) gradients.weight.add_(product(logits.t(), vectors));
  return loss;
}

// As TokenLoss by tensor operations, with all logits at once.
Tensor whole_loss(const Tensor& vectors, const TokenOutput& output, const Tensor& target,
                  const LabelSmoothing& smoothing, int64_t ignored) {
  return smoothed_cross_entropy(output.logits(vectors), target, smoothing.share, ignored,
                                smoothing.first);
}

class TokenLoss : public torch::autograd::Function<TokenLoss> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& vectors,
                        const Tensor& weight, const c10::optional<Tensor>& bias,
                        const Tensor& target, bool bfloat16, double share, int64_t first_smoothed,
                        bool with_gradients) {
    const WithoutAutocast no_autocast;
    const LabelSmoothing smoothing{share, first_smoothed};
    const auto type =
        bfloat16 && vectors.scalar_type() == at::kFloat ? at::kBFloat16 : vectors.scalar_type();
    const TokenOutput output{weight.to(type), bias ? contiguous_numbers(*bias) : Tensor()};
    const auto wants = [&](const Tensor& x) { return with_gradients && x.requires_grad(); };
    Gradients gradients;
    if (wants(vectors)) gradients.vectors = at::empty_like(vectors);
    if (wants(weight)) gradients.weight = at::zeros_like(weight);
    if (bias && wants(*bias)) gradients.bias = at::zeros_like(output.bias);
    double loss = 0;
    for (int64_t first = 0; first < vectors.size(0); first += rows_per_chunk) {
      const int64_t count = std::min(rows_per_chunk, vectors.size(0) - first);
      const Chunk chunk{vectors.narrow(0, first, count), target.narrow(0, first, count)};
      loss += chunk_loss(chunk, first, output, smoothing, gradients);
    }
    context->save_for_backward({gradients.vectors, gradients.weight, gradients.bias, vectors,
                                weight, bias.value_or(Tensor()), target});
    context->saved_data["share"] = share;
    context->saved_data["first"] = first_smoothed;
    return at::scalar_tensor(loss, vectors.options());
  }

  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& upstream) {
    const variable_list saved = context->get_saved_variables();
    variable_list gradients;
    // The saved gradients are constants; second derivatives need functions.
    if (at::GradMode::is_enabled())
      gradients = twin_gradients(
          {saved[3], saved[4], saved[5]}, upstream, [&](const variable_list& own) -> variable_list {
            return {whole_loss(
                own[0], {own[1], own[2]}, saved[6],
                {context->saved_data["share"].toDouble(), context->saved_data["first"].toInt()},
                /*ignored=*/-1)};
          });
    else
      for (size_t i = 0; i < 3; ++i)
        gradients.push_back(saved[i].defined() ? saved[i] * upstream[0] : Tensor());
    gradients.resize(8);
    return gradients;
  }
};

}  // namespace

Tensor TokenOutput::logits(const Tensor& vectors) const {
  return at::linear(vectors, weight, bias);
}

Tensor token_loss(const Tensor& vectors, const TokenOutput& output, const Tensor& target,
                  const Pass& pass, double smoothing, int64_t ignored, int64_t first) {
  if (vectors.dim() != 2 || target.dim() != 1 || vectors.size(0) != target.size(0) ||
      vectors.size(1) != output.weight.size(1))
    fail(
        "[token loss] vectors have shape [{}], weight [{}], target [{}]; [N, D], [V, D] and [N] "
        "are wanted",
        fmt::join(vectors.sizes(), ", "), fmt::join(output.weight.sizes(), ", "),
        fmt::join(target.sizes(), ", "));
  const bool fused =
      vectors.is_cpu() &&
      (vectors.scalar_type() == at::kFloat || vectors.scalar_type() == at::kDouble) &&
      !has_forward_gradient(vectors) && !has_forward_gradient(output.weight) &&
      !has_forward_gradient(output.bias);
  if (!fused) return whole_loss(vectors, output, target, {smoothing, first}, ignored);
  const Tensor used = (target != ignored).nonzero().squeeze(1);
  const bool all = used.size(0) == target.size(0);
  const Tensor tokens = all ? target.contiguous() : target.index_select(0, used);
  if (tokens.numel() > 0 &&
      (tokens.min().item<int64_t>() < 0 || tokens.max().item<int64_t>() >= output.weight.size(0)))
    fail("[token loss] the target holds {} .. {}; 0 .. {} are wanted", tokens.min().item<int64_t>(),
         tokens.max().item<int64_t>(), output.weight.size(0) - 1);
  const c10::optional<Tensor> bias =
      output.bias.defined() ? c10::optional<Tensor>(output.bias) : c10::nullopt;
  return TokenLoss::apply(all ? vectors : vectors.index_select(0, used), output.weight, bias,
                          tokens, pass.bfloat16, smoothing, first, at::GradMode::is_enabled());
}

Tensor sampled_token_loss(const Tensor& vectors, const TokenOutput& output, const Tensor& target,
                          const Pass& pass, int64_t negatives, double smoothing, int64_t ignored,
                          int64_t first) {
  if (!pass.generator) fail("[token loss] negatives are drawn, and the pass has no generator");
  const Tensor used = (target != ignored).nonzero().squeeze(1);
  const Tensor rows = vectors.index_select(0, used), right = target.index_select(0, used);
  const Tensor drawn = at::randint(first, output.weight.size(0), {negatives}, pass.generator,
                                   at::TensorOptions(at::kLong))
                           .to(target.device());
  const auto rows_for = [&](const Tensor& tokens) {
    return TokenOutput{output.weight.index_select(0, tokens),
                       output.bias.defined() ? output.bias.index_select(0, tokens) : Tensor()};
  };
  const TokenOutput rights = rows_for(right);
  Tensor logit = (rows * rights.weight).sum(1);
  if (rights.bias.defined()) logit = logit + rights.bias;
  const Tensor same = drawn.unsqueeze(0) == right.unsqueeze(1);  // [n, negatives]
  const Tensor others =
      rows_for(drawn).logits(rows).masked_fill(same, -std::numeric_limits<double>::infinity());
  const Tensor logs = at::cat({logit.unsqueeze(1), others}, 1).log_softmax(1);
  Tensor loss = -logs.select(1, 0).sum();
  if (smoothing == 0) return loss;
  const Tensor compared = 1 + negatives - same.sum(1);
  const Tensor means = logs.slice(1, 1).masked_fill(same, 0.0).sum(1) + logs.select(1, 0);
  return (1 - smoothing) * loss - smoothing * (means / compared).sum();
}

Tensor smoothed_cross_entropy(const Tensor& logits, const Tensor& target, double smoothing,
                              int64_t ignored, int64_t first) {
  const Tensor logs = logits.log_softmax(-1);
  Tensor right = at::nll_loss(logs, target, {}, at::Reduction::Sum, ignored);
  // For a token of probability 0, 0 times its logarithm would be NaN.
  if (smoothing == 0) return right;
  const Tensor means = logs.slice(-1, first).mean(-1).masked_fill(target == ignored, 0.0);
  return (1 - smoothing) * right - smoothing * means.sum();
}

}  // namespace attend
