#include "attend/ops/attention.h"

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

void check_pair(const Tensor& query, const Tensor& key) {
  check_one(query, query, "query");
  check_one(key, query, "key");
  if (query.dim() >= 3 && key.size(0) != query.size(0))
    fail("[attention] key has batch {}, query {}; they must match", key.size(0), query.size(0));
  if (query.dim() == 4 && (key.size(1) == 0 || query.size(1) % key.size(1) != 0))
    fail("[attention] key has {} heads, query {}; the first must divide the second", key.size(1),
         query.size(1));
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

struct ScopedScores {
  Tensor scores;        // [B, H, Tq, Tk], -inf outside the scope
  Tensor out_of_scope;  // undefined when every key is in scope
};

ScopedScores scoped_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  const Tensor q = with_four_axes(query);
  const Tensor k = with_four_axes(key);
  const Tensor mapped_key = repeat_heads(spec.score.map_key(k), q.size(1));
  Tensor scores = pairwise_scores(spec.score, spec.score.map_query(q), mapped_key);
  const Tensor mask =
      scope_mask(spec.scope, q.size(0), q.size(1), q.size(2), k.size(2), q.device());
  if (!mask.defined()) return {scores, {}};
  const Tensor out_of_scope = mask.logical_not();
  return {scores.masked_fill(out_of_scope, minus_infinity), out_of_scope};
}

}  // namespace

AttentionResult attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionSpec& spec) {
  check_pair(query, key);
  check_value(query, key, value);
  const auto [scores, out_of_scope] = scoped_scores(query, key, spec);
  Tensor weights = scores.softmax(-1);
  // A row with no key is NaN up to here; filling it also stops its gradient, so NaN never spreads.
  if (out_of_scope.defined()) weights = weights.masked_fill(out_of_scope, 0.0);
  const Tensor context = at::matmul(weights, repeat_heads(with_four_axes(value), scores.size(1)));
  return {with_axes_of(context, query), with_axes_of(scores.logsumexp(-1), query)};
}

Tensor attention_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  check_pair(query, key);
  return with_axes_of(scoped_scores(query, key, spec).scores, query);
}

Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                         const AttentionSpec& spec) {
  check_pair(query, key);
  const auto [scores, out_of_scope] = scoped_scores(query, key, spec);
  const Tensor log_normaliser = lse.reshape({scores.size(0), scores.size(1), scores.size(2), 1});
  Tensor weights = (scores - log_normaliser).exp();
  if (out_of_scope.defined()) weights = weights.masked_fill(out_of_scope, 0.0);
  return with_axes_of(weights, query);
}

}  // namespace attend
