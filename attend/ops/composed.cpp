#include <ATen/OpMathType.h>

#include <algorithm>
#include <limits>

#include "attend/ops/axes-inl.h"
#include "attend/ops/bias_parts.h"
#include "attend/ops/composed-inl.h"
#include "attend/ops/linear-inl.h"
#include "attend/ops/normalisers-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Scores as if every key were in scope.
Tensor unscoped_scores(const Parts& parts, const LoweredSpec& spec) {
  const at::ScalarType precision = at::toOpMathType(parts[part::query].scalar_type());
  Tensor query = parts[part::query].to(precision);
  const bool scales_query = spec.scale != 1 && spec.score->family == Family::dot;
  if (scales_query) query = query * spec.scale;
  Tensor scores = pairwise_scores(pair_score(*spec.score, parts[part::vector]), query,
                                  repeat_heads(parts[part::key].to(precision), spec.heads));
  if (spec.scale != 1 && !scales_query) scores = scores * spec.scale;
  if (parts[part::factors].defined()) scores = scores * parts[part::factors].unsqueeze(-1);
  if (spec.soft_cap > 0) scores = (scores / spec.soft_cap).tanh() * spec.soft_cap;
  if (parts[part::dense].defined()) scores = scores + parts[part::dense];
  if (parts[part::slopes].defined())
    scores =
        scores + dense_of_slopes(parts[part::slopes], spec.slope_offset, spec.queries, spec.keys);
  if (parts[part::relative].defined())
    scores = scores + dense_of_relative(parts[part::relative], spec);
  if (parts[part::centres].defined())
    scores = scores + dense_of_gaussian(parts[part::centres], parts[part::widths], spec.keys);
  if (const Tensor& queries = parts[part::query_products], &keys = parts[part::key_products];
      queries.defined() || keys.defined())
    scores = scores + dense_of_products(queries, keys, spec);
  if (parts[part::edges].defined()) scores = scores + dense_of_edges(parts[part::edges], spec);
  if (parts[part::query_sums].defined())
    scores = scores +
             dense_of_sums(parts[part::query_sums], parts[part::key_sums], scores.scalar_type());
  return scores;
}

// True outside the scope, with four axes that broadcast to [B, H, Tq, Tk]; undefined if every key
// is in scope.
Tensor out_of_scope(const Parts& parts, const LoweredSpec& spec) {
  const Tensor in_scope = scope_mask(spec.scope, spec.batch, spec.heads, spec.queries, spec.keys,
                                     parts[part::query].device());
  return in_scope.defined() ? in_scope.logical_not() : Tensor();
}

Tensor within_scope(const Tensor& scores, const Parts& parts, const LoweredSpec& spec) {
  const Tensor outside = out_of_scope(parts, spec);
  return outside.defined() ? scores.masked_fill(outside, minus_infinity) : scores;
}

// True for rows in which all scores are -inf, [.., Tq, 1]; undefined if there are none. A bias or a
// score of -inf can also make a row empty, not only the scope.
Tensor empty_rows(const Tensor& scores) {
  if (scores.size(-1) == 0) return at::ones({}, scores.options().dtype(at::kBool));
  const Tensor empty = scores.detach().amax(-1, true) == minus_infinity;
  // Handling rows that do not occur costs a pass or two; checking for them on an accelerator would
  // stall it.
  return empty.device().is_cpu() && !empty.any().item<bool>() ? Tensor() : empty;
}

// Multiplies the scores of a linear normaliser by exp of the key shifts less the largest shift in
// scope. Returns the logarithms of the factors that the rows then lack, [B, H, Tq].
Tensor shift_keys(const Parts& parts, const LoweredSpec& spec, Tensor& scores) {
  const Tensor own_shifts = key_shifts(spec);
  if (own_shifts.size(-1) != spec.keys || spec.keys == 0)
    return (spec.query_shift + own_shifts.sum(-1, true)).squeeze(-1);
  const Tensor all = own_shifts.expand({spec.batch, spec.heads, spec.queries, spec.keys});
  const Tensor found = within_scope(all, parts, spec).amax(-1, true);
  const Tensor top = found.masked_fill(found == minus_infinity, 0.0);
  // Keys out of scope may exceed it.
  scores = scores * (own_shifts - top).clamp_max(0.0).exp();
  return (spec.query_shift + top).squeeze(-1);
}

}  // namespace

Normalised normalised_scores(const Parts& parts, const LoweredSpec& spec) {
  Tensor scores = unscoped_scores(parts, spec), shift;
  if (spec.key_shift.defined()) shift = shift_keys(parts, spec, scores);
  scores = within_scope(scores, parts, spec);
  // The sink of a head is an additional key without a value in the softmax.
  const Tensor& sinks = parts[part::sinks];
  if (sinks.defined()) {
    const Tensor column = sinks.view({1, -1, 1, 1});
    scores = at::cat({scores, column.expand({spec.batch, spec.heads, spec.queries, 1})}, -1);
  }
  NormaliserOptions options = spec.options;
  if (parts[part::alphas].defined()) options.parameter = parts[part::alphas].view({1, -1, 1, 1});
  auto [weights, lse] = spec.normaliser->normalise(scores, empty_rows(scores), options);
  if (sinks.defined()) weights = weights.narrow(-1, 0, spec.keys);
  return {weights, shift.defined() ? lse + shift : lse};
}

AttentionResult composed_attention(const Parts& parts, const LoweredSpec& spec) {
  if (goes_along_edges(spec)) return composed_along_edges(parts, spec);
  auto [weights, lse] = normalised_scores(parts, spec);
  if (spec.dropout.probability > 0) weights = weights * dropout_factors(spec, weights.options());
  const Tensor value = repeat_heads(parts[part::value].to(weights.scalar_type()), spec.heads);
  return {at::matmul(weights, value), lse};
}

Tensor composed_scores(const Parts& parts, const LoweredSpec& spec) {
  Tensor scores = unscoped_scores(parts, spec);
  if (spec.key_shift.defined()) scores = scores * (spec.query_shift + key_shifts(spec)).exp();
  return within_scope(scores, parts, spec);
}

// The weights cannot be computed from the lse: for large scores it is rounded too coarsely.
Tensor composed_weights(const Parts& parts, const LoweredSpec& spec) {
  return normalised_scores(parts, spec).weights;
}

}  // namespace attend
