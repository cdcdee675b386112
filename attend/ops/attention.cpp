#include "attend/ops/attention.h"

#include <ATen/OpMathType.h>

#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

std::string shape_of(const Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

void check_one(const Tensor& tensor, const Tensor& query, const char* name) {
  if (!tensor.defined()) fail("[attention] {} is undefined", name);
  if (!at::isFloatingType(tensor.scalar_type()))
    fail("[attention] {} has dtype {}; it must be floating point", name,
         c10::toString(tensor.scalar_type()));
  if (tensor.scalar_type() != query.scalar_type())
    fail("[attention] {} has dtype {}, query {}; they must match", name,
         c10::toString(tensor.scalar_type()), c10::toString(query.scalar_type()));
  if (tensor.device() != query.device())
    fail("[attention] {} is on {}, query on {}; they must match", name, tensor.device().str(),
         query.device().str());
  if (tensor.dim() != query.dim() || tensor.dim() < 2 || tensor.dim() > 4)
    fail("[attention] {} has shape {}, query {}; all must have 2, 3 or 4 axes, the same number",
         name, shape_of(tensor), shape_of(query));
}

void check_depth(const Tensor& tensor, const char* name) {
  if (tensor.size(-1) == 0)
    fail("[attention] {} has shape {}; its depth, the last axis, must be 1 or more", name,
         shape_of(tensor));
}

void check_pair(const Tensor& query, const Tensor& key) {
  check_one(query, query, "query");
  check_one(key, query, "key");
  check_depth(query, "query");
  check_depth(key, "key");
  if (query.dim() >= 3 && key.size(0) != query.size(0))
    fail("[attention] key has batch {}, query {}; they must match", key.size(0), query.size(0));
  if (query.dim() != 4) return;
  if (key.size(1) == 0 || query.size(1) == 0 || query.size(1) % key.size(1) != 0)
    fail("[attention] key has {} heads, query {}; the first must divide the second, neither be 0",
         key.size(1), query.size(1));
}

void check_value(const Tensor& query, const Tensor& key, const Tensor& value) {
  check_one(value, query, "value");
  for (int64_t axis = 0; axis + 1 < key.dim(); ++axis) {
    if (value.size(axis) != key.size(axis))
      fail("[attention] value has shape {}, key {}; all axes but the last must match",
           shape_of(value), shape_of(key));
  }
}

// [T, D] and [B, T, D] become [1, 1, T, D] and [B, 1, T, D].
Tensor with_four_axes(const Tensor& x) {
  if (x.dim() == 4) return x;
  return x.dim() == 3 ? x.unsqueeze(1) : x.unsqueeze(0).unsqueeze(0);
}

Tensor with_axes_of(const Tensor& result, const Tensor& query) {
  if (query.dim() == 4) return result;
  return query.dim() == 3 ? result.squeeze(1) : result.squeeze(1).squeeze(0);
}

// Each head of keys or values serves a group of query heads.
Tensor repeat_heads(const Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

Score in_precision(const Score& score, at::ScalarType stored, at::ScalarType precision) {
  if (stored == precision) return score;
  Parameters parameters;
  for (const auto& [name, tensor] : score.parameters()) {
    if (tensor.scalar_type() != stored)
      fail("[attention] parameter {} of score {} has dtype {}, query {}; they must match", name,
           score.row().name, c10::toString(tensor.scalar_type()), c10::toString(stored));
    parameters.emplace(name, tensor.to(precision));
  }
  return Score(score.row().name, std::move(parameters));
}

// [B, H, Tq, Tk], as if every key were in scope.
Tensor unscoped_scores(const Tensor& query, const Tensor& key, const Score& stored_score) {
  const at::ScalarType precision = at::toOpMathType(query.scalar_type());
  const Score score = in_precision(stored_score, query.scalar_type(), precision);
  const Tensor q = with_four_axes(query).to(precision);
  const Tensor k = with_four_axes(key).to(precision);
  const int64_t heads = q.size(1);
  const Tensor mapped_query = score.map_query(q);
  // Shared keys are mapped once a group, unless each head maps them its own way.
  const Tensor mapped_key =
      score.heads() ? score.map_key(repeat_heads(k, heads)) : repeat_heads(score.map_key(k), heads);
  return pairwise_scores(score, mapped_query, mapped_key);
}

// true outside the scope, of four axes that broadcast to [B, H, Tq, Tk]; undefined when every key
// is in scope.
Tensor out_of_scope(const Scope& scope, const Tensor& query, const Tensor& key) {
  const Tensor q = with_four_axes(query);
  Scope four_axes = scope;
  if (query.dim() == 3 && scope.mask.defined() && scope.mask.dim() == 3)
    four_axes.mask = scope.mask.unsqueeze(1);
  const Tensor in_scope =
      scope_mask(four_axes, q.size(0), q.size(1), q.size(2), key.size(-2), q.device());
  return in_scope.defined() ? in_scope.logical_not() : Tensor();
}

// The scores with -inf outside the scope, except that a row with no key in scope is all 0: a row of
// -inf has a softmax of NaN, which would live on in the derivatives.
Tensor scores_for_softmax(const Tensor& scores, const Tensor& outside, const Tensor& empty) {
  const Tensor fill =
      at::zeros_like(empty, scores.options()).masked_fill(empty.logical_not(), minus_infinity);
  return at::where(outside, fill, scores);
}

// [B, H, Tq, Tk], -inf outside the scope.
Tensor scoped_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  const Tensor outside = out_of_scope(spec.scope, query, key);
  const Tensor scores = unscoped_scores(query, key, spec.score);
  return outside.defined() ? scores.masked_fill(outside, minus_infinity) : scores;
}

}  // namespace

const std::vector<NormaliserRow>& normaliser_table() {
  static const std::vector<NormaliserRow> table = {
      {"softmax", "w_ij = exp(s_ij) / sum_j exp(s_ij)", "Bahdanau et al. 2015, eq. 6"},
  };
  return table;
}

AttentionResult attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionSpec& spec) {
  check_pair(query, key);
  check_value(query, key, value);
  const Tensor outside = out_of_scope(spec.scope, query, key);
  Tensor scores = unscoped_scores(query, key, spec.score);
  Tensor empty;
  if (outside.defined()) {
    empty = outside.all(-1, true);
    scores = scores_for_softmax(scores, outside, empty);
  }
  Tensor weights = scores.softmax(-1);
  Tensor lse = scores.logsumexp(-1);
  if (outside.defined()) {
    weights = weights.masked_fill(empty, 0.0);
    lse = lse.masked_fill(empty.squeeze(-1), minus_infinity);
  }
  const Tensor v = repeat_heads(with_four_axes(value), scores.size(1)).to(scores.scalar_type());
  const Tensor context = at::matmul(weights, v).to(query.scalar_type());
  return {with_axes_of(context, query), with_axes_of(lse, query)};
}

Tensor attention_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  check_pair(query, key);
  return with_axes_of(scoped_scores(query, key, spec), query);
}

Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                         const AttentionSpec& spec) {
  check_pair(query, key);
  if (!lse.defined() || lse.sizes() != query.sizes().slice(0, query.dim() - 1))
    fail("[attention] lse has shape {}, query {}; they must match but for the last axis",
         lse.defined() ? shape_of(lse) : "undefined", shape_of(query));
  const Tensor scores = scoped_scores(query, key, spec);
  // exp(-inf - 0) is the 0 that a row with no key in scope has; -inf - -inf is NaN.
  const Tensor normaliser = lse.masked_fill(lse == minus_infinity, 0.0);
  const Tensor weights =
      (scores - normaliser.reshape({scores.size(0), scores.size(1), scores.size(2), 1})).exp();
  return with_axes_of(weights.to(query.scalar_type()), query);
}

}  // namespace attend
