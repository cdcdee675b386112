#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "attend/ops/normalisers-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double usual_alpha = 1.5, usual_top = 8;

Normalised without_keys(const Tensor& scores) {
  return {scores, scores.logsumexp(-1)};  // -inf
}

// Weights of entmax and their slopes dw/ds at a fixed offset, for scores less the largest. The
// offset is 1 / (alpha - 1) above the threshold. NaN counts as inside.
struct AlphaWeights {
  Tensor weights, slopes;

  AlphaWeights(const Tensor& scores, const Tensor& offset, const Tensor& rate) {
    const Tensor outside = ((scores - offset) * rate).detach() <= -1;
    const Tensor kept = scores.masked_fill(outside, 0.0);
    const Tensor rise = ((kept - offset) * rate).masked_fill(outside, 0.0);
    weights = (rise.log1p() / rate).exp().masked_fill(outside, 0.0);
    slopes = weights / (rise + 1);
  }
};

// The root of sum_j w_j = 1 between 0 (one weight is 1) and the offset of equal scores, by Newton
// steps. A step out of the bracket is replaced by its middle. Above alpha 2 the sum is not convex,
// and every fourth step is replaced, too.
Tensor alpha_offset(const Tensor& scores, const Tensor& rate) {
  const at::NoGradGuard no_grad;
  const double keys = std::log(static_cast<double>(scores.size(-1)));
  Tensor low = at::zeros_like(scores.narrow(-1, 0, 1)), t = low;
  Tensor high = (-(rate * -keys).expm1() / rate).expand_as(low);
  constexpr int max_steps = 100;
  for (int step = 0; step < max_steps; ++step) {
    const AlphaWeights at_t(scores, t, rate);
    const Tensor sum = at_t.weights.sum(-1, true), slope = at_t.slopes.sum(-1, true);
    const Tensor above = sum >= 1;
    low = at::where(above, t, low);
    high = at::where(above, high, t);
    const Tensor middle = low + (high - low) / 2;
    const Tensor newton = t + (sum - 1) / slope.clamp_min(0.5);
    Tensor inside = newton.gt(low).logical_and(newton.lt(high));
    if (step % 4 == 3) inside = inside.logical_and(rate <= 1);
    const Tensor next = at::where(newton == t, t, at::where(inside, newton, middle));
    if (at::equal(next, t)) break;
    t = next;
  }
  return t;
}

// Two differentiable Newton steps from the root: their first and second derivatives equal the
// derivatives of the root.
Normalised entmax(const Tensor& scores, const Tensor& empty, const NormaliserOptions& options) {
  if (scores.size(-1) == 0) return without_keys(scores);
  const Tensor finite = without_empty(scores, empty);
  const Tensor alpha = options.parameter.defined()
                           ? options.parameter.to(scores.scalar_type())
                           : at::full({}, options.number.value_or(usual_alpha), scores.options());
  const Tensor rate = alpha - 1;
  const Tensor top = finite.detach().amax(-1, true), moved = finite - top;
  Tensor offset = alpha_offset(moved.detach(), rate.detach());
  for (int step = 0; step < 2; ++step) {
    const AlphaWeights found(moved, offset, rate);
    offset = offset + (found.weights.sum(-1, true) - 1) / found.slopes.sum(-1, true);
  }
  const Tensor threshold = (offset - rate.reciprocal() + top).squeeze(-1);
  return with_empty(AlphaWeights(moved, offset, rate).weights, threshold, empty);
}

// e^s - 1 over e^top, top the largest score or 0; exact near 0, and finite for large scores.
Normalised softpick(const Tensor& scores, const Tensor& empty, const NormaliserOptions&) {
  constexpr double floor = 1e-8;
  if (scores.size(-1) == 0) return without_keys(scores);
  const Tensor outside = scores.detach() == minus_infinity;
  const Tensor kept = scores.masked_fill(outside, 0.0);
  const Tensor top = kept.detach().amax(-1, true).clamp_min(0.0), share = (-top).exp();
  const Tensor risen =
      at::where(kept.detach() < 1, kept.clamp_max(1.0).expm1() * share, (kept - top).exp() - share);
  const Tensor sum = risen.abs().sum(-1, true);
  const Tensor nothing = sum.detach() == 0, divisor = sum + share * floor;
  const Tensor lse = (divisor.log() + top).masked_fill(nothing, minus_infinity).squeeze(-1);
  return with_empty(risen.relu() / divisor, lse, empty);
}

// From the last key to the first, each key breaks a share off the rest of a stick.
Normalised stick_breaking(const Tensor& scores, const Tensor& empty, const NormaliserOptions&) {
  if (scores.size(-1) == 0) return without_keys(scores);
  const Tensor outside = scores.detach() == minus_infinity;
  const Tensor kept = scores.masked_fill(outside, 0.0);
  const Tensor left = at::log_sigmoid(-kept).masked_fill(outside, 0.0);
  const Tensor later = at::constant_pad_nd(left.flip(-1).cumsum(-1), {1, -1}).flip(-1);
  const Tensor weights = (at::log_sigmoid(kept) + later).exp().masked_fill(outside, 0.0);
  return with_empty(weights, zero_of_each_row(scores), empty);
}

// Equal scores are all kept or all left out.
Normalised top_k(const Tensor& scores, const Tensor& empty, const NormaliserOptions& options) {
  const int64_t keys = scores.size(-1);
  if (keys == 0) return without_keys(scores);
  const Tensor finite = without_empty(scores, empty);
  const auto kept = std::min(keys, top_of(options));
  const Tensor sorted = std::get<0>(finite.detach().sort(-1, /*descending=*/true));
  const Tensor left_out = finite.detach() < sorted.narrow(-1, kept - 1, 1);
  const Tensor largest = finite.masked_fill(left_out, minus_infinity);
  return with_empty(largest.softmax(-1), log_sum_exp(largest), empty);
}

}  // namespace

int64_t top_of(const NormaliserOptions& options) {
  return static_cast<int64_t>(options.number.value_or(usual_top));
}

std::vector<NormaliserRow> later_rows() {
  using kernels::Normaliser;
  return {
      {.name = "entmax",
       .syntax = "entmax:A",
       .formula = "w_ij = max(0, (A - 1) (s_ij - t_i))^(1 / (A - 1)), t_i so that sum_j w_ij = 1",
       .source = "Peters et al. 2019; A per head, trained: Correia et al. 2019",
       .normalise = entmax,
       .lse = Lse::threshold,
       .kernel = Normaliser::entmax,
       .number = NormaliserNumber{"A", 1.001, 4, usual_alpha},
       .parameter = NormaliserParameter{.name = "alpha",
                                        .meaning = "alpha, above 1 and at most 4",
                                        .by_number = true,
                                        .least = 1.001,
                                        .largest = 2}},
      {.name = "softpick",
       .syntax = "softpick",
       .formula = "w_ij = max(0, exp(s_ij) - 1) / (1e-8 + sum_j |exp(s_ij) - 1|)",
       .source = "Zuhri et al. 2025",
       .normalise = softpick,
       .kernel = Normaliser::softpick,
       .sums_to_one = false,
       .shift_invariant = false},
      {.name = "stick_breaking",
       .syntax = "stick_breaking",
       .formula = "w_ij = sigmoid(s_ij) prod_l (1 - sigmoid(s_il)) over the keys l after j",
       .source = "Tan et al. 2025",
       .normalise = stick_breaking,
       .lse = Lse::zero,
       .kernel = Normaliser::stick_breaking,
       .sums_to_one = false,
       .shift_invariant = false,
       .order_dependent = true},
      {.name = "top_k",
       .syntax = "top_k:K",
       .formula = "softmax over the keys with s_ij at least the K-th largest of the row",
       .source = "Gupta et al. 2021, 3",
       .normalise = top_k,
       .kernel = Normaliser::top_k,
       .number = NormaliserNumber{"K", 1, 1e9, usual_top, true}},
  };
}

}  // namespace attend
