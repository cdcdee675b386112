#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "attend/base/error.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/normalisers-inl.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

[[noreturn]] void refuse_second_derivative(const char* normaliser, const char* reason) {
  fail(
      "[attention] normaliser {} has no second derivative: {}; differentiate it once, without "
      "create_graph, or take softmax",
      normaliser, reason);
}

// Drawn on the CPU in double: the result depends only on the seed and the shape.
Tensor gumbel_noise(const Tensor& scores, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const Tensor exponential = at::empty(scores.sizes(), at::TensorOptions().dtype(at::kDouble))
                                 .exponential_(1.0, generator)
                                 .clamp_min_(std::numeric_limits<double>::min());
  return exponential.log_().neg_().to(scores.options());
}

// The argmax is a sample from the softmax of the scores (Maddison et al. 2017).
Tensor perturbed(const Tensor& scores, uint64_t seed) {
  return seed == 0 ? scores : scores + gumbel_noise(scores, seed);
}

// Sets rows of x to NaN if `marked` has NaN in that row.
Tensor with_nan_of(const Tensor& marked, const Tensor& x) {
  return x.masked_fill(marked.detach().isnan().any(-1, /*keepdim=*/true),
                       std::numeric_limits<double>::quiet_NaN());
}

// One-hot; all 0 for a row of -inf.
Tensor one_hot_of_largest(const Tensor& scores) {
  Tensor weights = at::zeros_like(scores);
  if (scores.numel() == 0) return weights;
  weights.scatter_(-1, scores.argmax(-1, /*keepdim=*/true), 1.0);
  return with_nan_of(scores, weights.masked_fill_(scores == minus_infinity, 0.0));
}

Tensor row_numbers(const Tensor& numbers, const Tensor& empty) {
  return empty.defined() ? numbers.masked_fill(empty.squeeze(-1), minus_infinity) : numbers;
}

// Before the first query, the first key counts as attended.
Tensor previous_weights(const Tensor& scores, const NormaliserOptions& options) {
  if (options.previous.defined())
    return options.previous.to(scores.scalar_type()).expand_as(scores);
  Tensor first = at::zeros_like(scores);
  if (scores.size(-1) > 0) first.select(-1, 0).fill_(1.0);
  return first;
}

// Identity that can be differentiated only once.
struct OnlyOnce : torch::autograd::Function<OnlyOnce> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }

  static variable_list backward(AutogradContext*, const variable_list& upstream) {
    if (at::GradMode::is_enabled())
      refuse_second_derivative("hard", "the chosen key is not a smooth function of the scores");
    return upstream;
  }
};

// q of the expected alignment p_j q_j: the probability of reaching key j without stopping before
// it.
struct Arrivals : torch::autograd::Function<Arrivals> {
  static Tensor forward(AutogradContext* context, const Tensor& p, const Tensor& previous) {
    const Tensor stop = contiguous_numbers(p.to(at::kCPU));
    const Tensor before = contiguous_numbers(previous.to(at::kCPU));
    Tensor arrived = at::empty_like(stop);
    const int64_t keys = p.size(-1), rows = keys == 0 ? 0 : p.numel() / keys;
    AT_DISPATCH_FLOATING_TYPES(p.scalar_type(), "monotonic", [&] {
      const auto* pj = stop.data_ptr<scalar_t>();
      const auto* previous_j = before.data_ptr<scalar_t>();
      auto* q = arrived.data_ptr<scalar_t>();
      for (int64_t row = 0; row < rows; ++row, pj += keys, previous_j += keys, q += keys) {
        q[0] = previous_j[0];
        for (int64_t j = 1; j < keys; ++j) q[j] = (1 - pj[j - 1]) * q[j - 1] + previous_j[j];
      }
    });
    context->save_for_backward({stop, arrived});
    return arrived.to(p.device());
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    if (at::GradMode::is_enabled())
      refuse_second_derivative("monotonic", "its expectation is computed key by key");
    const variable_list saved = context->get_saved_variables();
    const Tensor &stop = saved[0], &arrived = saved[1];
    const Tensor given = contiguous_numbers(upstream[0].to(at::kCPU));
    Tensor grad_stop = at::empty_like(stop), grad_previous = at::empty_like(stop);
    const int64_t keys = stop.size(-1), rows = keys == 0 ? 0 : stop.numel() / keys;
    AT_DISPATCH_FLOATING_TYPES(stop.scalar_type(), "monotonic", [&] {
      const auto* p = stop.data_ptr<scalar_t>();
      const auto* q = arrived.data_ptr<scalar_t>();
      const auto* dq = given.data_ptr<scalar_t>();
      auto* dp = grad_stop.data_ptr<scalar_t>();
      auto* whole = grad_previous.data_ptr<scalar_t>();
      for (int64_t row = 0; row < rows;
           ++row, p += keys, q += keys, dq += keys, dp += keys, whole += keys) {
        // q[j + 1] = (1 - p[j]) q[j] + previous[j + 1]
        whole[keys - 1] = dq[keys - 1];
        dp[keys - 1] = 0;
        for (int64_t j = keys - 2; j >= 0; --j) {
          whole[j] = dq[j] + (1 - p[j]) * whole[j + 1];
          dp[j] = -q[j] * whole[j + 1];
        }
      }
    });
    return {grad_stop.to(upstream[0].device()), grad_previous.to(upstream[0].device())};
  }
};

// Forward mode uses the same recurrence: q_j' = (1 - p_(j-1)) q_(j-1)' + (previous_j' - p_(j-1)'
// q_(j-1)).
Tensor arrivals(const Tensor& p, const Tensor& previous) {
  const bool forward_mode = has_forward_gradient(p) || has_forward_gradient(previous);
  if (!forward_mode || p.numel() == 0) return Arrivals::apply(p, previous);
  const auto derivative = [](const Tensor& x) {
    return has_forward_gradient(x) ? x._fw_grad(0) : at::zeros_like(x);
  };
  const Tensor stop = p._fw_primal(0);
  const Tensor arrived = Arrivals::apply(stop, previous._fw_primal(0));
  const Tensor stopping = at::constant_pad_nd(derivative(p) * arrived, {1, -1}, 0.0);
  return at::_make_dual(arrived, Arrivals::apply(stop, derivative(previous) - stopping), 0);
}

Normalised hard(const Tensor& scores, const Tensor& empty, const NormaliserOptions& options) {
  const Tensor smooth = log_sum_exp(without_empty(scores, empty));
  const Tensor lse = has_forward_gradient(smooth) ? smooth : OnlyOnce::apply(smooth);
  return {one_hot_of_largest(perturbed(scores.detach(), options.seed)), row_numbers(lse, empty)};
}

Normalised gumbel(const Tensor& scores, const Tensor& empty, const NormaliserOptions& options) {
  const Tensor finite = without_empty(scores, empty);
  const Tensor noisy = perturbed(scores, options.seed);
  const Tensor soft =
      without_empty((without_empty(noisy, empty) / options.temperature).softmax(-1), empty);
  return {one_hot_of_largest(noisy.detach()) + (soft - soft.detach()),
          row_numbers(log_sum_exp(finite), empty)};
}

Normalised monotonic(const Tensor& scores, const Tensor& empty, const NormaliserOptions& options) {
  const Tensor p = scores.sigmoid();
  return {p * arrivals(p, previous_weights(scores, options)),
          row_numbers(zero_of_each_row(scores), empty)};
}

Normalised monotonic_hard(const Tensor& scores, const Tensor& empty,
                          const NormaliserOptions& options) {
  const Tensor previous = previous_weights(scores, options).detach();
  // 0 before the previous query's key, 1 from it on; 0 everywhere once no key was found.
  const Tensor start = one_hot_of_largest(previous).logical_and(previous.gt(0));
  const Tensor reached = start.cumsum(-1).gt(0);
  const Tensor found = reached.logical_and(scores.detach().ge(0)).to(at::kLong);
  const Tensor first = found.mul(found.cumsum(-1).eq(1));
  return {with_nan_of(previous, with_nan_of(scores, first.to(scores.scalar_type()))),
          row_numbers(zero_of_each_row(scores), empty)};
}

}  // namespace

Tensor zero_of_each_row(const Tensor& scores) {
  const Tensor zero = at::zeros(scores.sizes().slice(0, scores.dim() - 1), scores.options());
  return zero.masked_fill(scores.detach().isnan().any(-1),
                          std::numeric_limits<double>::quiet_NaN());
}

Tensor log_sum_exp(const Tensor& scores) {
  if (scores.size(-1) == 0) return scores.logsumexp(-1);
  const Tensor top = scores.detach().amax(-1, true);
  return (scores - top).logsumexp(-1) + top.squeeze(-1);
}

std::vector<NormaliserRow> one_key_rows() {
  return {
      {.name = "hard",
       .syntax = "hard",
       .formula = "w_i = one-hot of argmax_j s_ij, or of a key drawn from softmax(s_i)",
       .source = "Xu et al. 2015, 4.1",
       .normalise = hard,
       .twice_differentiable = false,
       .draws = Draws::keys,
       .training = Training::reward},
      {.name = "gumbel",
       .syntax = "gumbel:T",
       .formula = "w_i = one-hot of argmax_j (s_ij + g_ij); backward: softmax((s_i + g_i) / T)",
       .source = "Jang et al. 2017, eq. 1-2, straight-through; Maddison et al. 2017",
       .normalise = gumbel,
       .temperature = Temperature::gradient,
       .draws = Draws::keys},
      {.name = "monotonic",
       .syntax = "monotonic",
       .formula = "w_ij = p_ij ((1 - p_i,j-1) w_i,j-1 / p_i,j-1 + w_i-1,j), p = sigmoid(s)",
       .source = "Raffel et al. 2017, eq. 9-11",
       .normalise = monotonic,
       .lse = Lse::zero,
       .sums_to_one = false,
       .shift_invariant = false,
       .sequential = true,
       .order_dependent = true,
       .twice_differentiable = false,
       .draws = Draws::noise,
       .first_offset = -1,
       .in_evaluation = "monotonic_hard"},
      {.name = "monotonic_hard",
       .syntax = "monotonic_hard",
       .formula =
           "w_i = one-hot of the first j, from the previous key on, with sigmoid(s_ij) >= 1/2",
       .source = "Raffel et al. 2017, alg. 1",
       .normalise = monotonic_hard,
       .lse = Lse::zero,
       .sums_to_one = false,
       .shift_invariant = false,
       .sequential = true,
       .order_dependent = true,
       .training = Training::none,
       .first_offset = -1},
  };
}

}  // namespace attend
