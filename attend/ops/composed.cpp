#include <ATen/OpMathType.h>

#include <algorithm>
#include <limits>

#include "attend/ops/form-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// The score that compares what has been mapped: the plainest row with the same pairs.
Score pair_score(const Parts& parts, const Form& form) {
  const auto same = [&](const ScoreRow& row) {
    return row.family == form.score->family && row.activation == form.score->activation;
  };
  const auto row = std::find_if(score_table().begin(), score_table().end(), same);
  if (parts[part::vector].defined()) return Score(row->name, {{"v", parts[part::vector]}});
  return Score(row->name);
}

Tensor repeat_heads(const Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

// As if every key were in scope.
Tensor unscoped_scores(const Parts& parts, const Form& form) {
  const at::ScalarType precision = at::toOpMathType(parts[part::query].scalar_type());
  Tensor query = parts[part::query].to(precision);
  const bool scales_query = form.scale != 1 && form.score->family == Family::dot;
  if (scales_query) query = query * form.scale;
  Tensor scores = pairwise_scores(pair_score(parts, form), query,
                                  repeat_heads(parts[part::key].to(precision), form.heads));
  if (form.scale != 1 && !scales_query) scores = scores * form.scale;
  if (form.soft_cap > 0) scores = (scores / form.soft_cap).tanh() * form.soft_cap;
  if (parts[part::dense].defined()) scores = scores + parts[part::dense];
  if (parts[part::slopes].defined())
    scores =
        scores + dense_of_slopes(parts[part::slopes], form.slope_offset, form.queries, form.keys);
  if (parts[part::relative].defined())
    scores = scores + dense_of_relative(parts[part::relative], form);
  if (parts[part::centres].defined())
    scores = scores + dense_of_gaussian(parts[part::centres], parts[part::widths], form.keys);
  return scores;
}

// True outside the scope, of four axes that broadcast to [B, H, Tq, Tk]; undefined when every key
// is in scope.
Tensor out_of_scope(const Parts& parts, const Form& form) {
  const Tensor in_scope = scope_mask(form.scope, form.batch, form.heads, form.queries, form.keys,
                                     parts[part::query].device());
  return in_scope.defined() ? in_scope.logical_not() : Tensor();
}

// One more key of a score a head takes part in the softmax and leaves it without a value.
Normalised softmax_with_sinks(const Tensor& scores, const Tensor& sinks,
                              const NormaliserRow& normaliser) {
  const Tensor column =
      sinks.view({1, -1, 1, 1}).expand({scores.size(0), scores.size(1), scores.size(2), 1});
  const auto [weights, lse] = normaliser.normalise(at::cat({scores, column}, -1), {}, {});
  return {weights.narrow(-1, 0, scores.size(3)), lse};
}

Normalised normalised_scores(const Parts& parts, const Form& form) {
  const Tensor outside = out_of_scope(parts, form);
  Tensor scores = unscoped_scores(parts, form);
  Tensor empty;
  if (outside.defined()) {
    scores = scores.masked_fill(outside, minus_infinity);
    empty = outside.all(-1, true);
  } else if (form.keys == 0) {
    empty = at::ones({}, scores.options().dtype(at::kBool));
  }
  if (parts[part::sinks].defined())
    return softmax_with_sinks(scores, parts[part::sinks], *form.normaliser);
  auto [weights, lse] = form.normaliser->normalise(scores, empty, form.options);
  const Tensor divisor = log_divisor(form);
  return {weights, divisor.defined() ? lse + divisor : lse};
}

Tensor within_scope(const Tensor& scores, const Parts& parts, const Form& form) {
  const Tensor outside = out_of_scope(parts, form);
  return outside.defined() ? scores.masked_fill(outside, minus_infinity) : scores;
}

}  // namespace

AttentionResult composed_attention(const Parts& parts, const Form& form) {
  auto [weights, lse] = normalised_scores(parts, form);
  if (form.dropout.probability > 0) weights = weights * dropout_factors(form, weights.options());
  const Tensor value = repeat_heads(parts[part::value].to(weights.scalar_type()), form.heads);
  return {at::matmul(weights, value), lse};
}

Tensor composed_scores(const Parts& parts, const Form& form) {
  const Tensor scores = unscoped_scores(parts, form), divisor = log_divisor(form);
  return within_scope(divisor.defined() ? scores * divisor.unsqueeze(-1).exp() : scores, parts,
                      form);
}

// Not from the lse: beside large scores it is rounded to where it does not tell the weights.
Tensor composed_weights(const Parts& parts, const Form& form) {
  return normalised_scores(parts, form).weights;
}

}  // namespace attend
