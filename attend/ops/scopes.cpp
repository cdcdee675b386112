#include "attend/ops/scopes.h"

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// Combines two masks; an undefined tensor means no condition.
template <class Combine>
Tensor both(const Tensor& a, const Tensor& b, Combine combine) {
  if (!a.defined()) return b;
  return b.defined() ? combine(a, b) : a;
}

void add_condition(Clause& clause, const ConditionPointer& added) {
  for (ConditionPointer& condition : clause) {
    ConditionPointer one = condition->merged(*added);
    if (!one) continue;
    condition = std::move(one);
    return;
  }
  clause.push_back(added);
}

// Applies `changed` to each condition.
template <class Changed>
Scope with_conditions(Scope scope, Changed changed) {
  for (Clause& clause : scope.any_of)
    for (ConditionPointer& condition : clause) condition = changed(*condition);
  return scope;
}

}  // namespace

Scope all_keys() { return {}; }

Scope operator&(const Scope& a, const Scope& b) {
  if (a.any_of.empty()) return b;
  if (b.any_of.empty()) return a;
  Scope both;
  both.any_of.reserve(a.any_of.size() * b.any_of.size());
  for (const Clause& first : a.any_of) {
    for (const Clause& second : b.any_of) {
      Clause& clause = both.any_of.emplace_back(first);
      for (const ConditionPointer& condition : second) add_condition(clause, condition);
    }
  }
  return both;
}

Scope operator|(const Scope& a, const Scope& b) {
  if (a.any_of.empty() || b.any_of.empty()) return all_keys();
  Scope either = a;
  either.any_of.insert(either.any_of.end(), b.any_of.begin(), b.any_of.end());
  return either;
}

Scope shifted(const Scope& scope, int64_t offset, int64_t queries) {
  return with_conditions(scope, [&](const Condition& one) { return one.shifted(offset, queries); });
}

Scope shifted_keys(const Scope& scope, int64_t first, int64_t keys) {
  return with_conditions(scope,
                         [&](const Condition& one) { return one.shifted_keys(first, keys); });
}

Scope placed(const Scope& scope, const QueryOffset& place) {
  return with_conditions(scope, [&](const Condition& one) { return one.placed(place); });
}

Scope with_four_axes(const Scope& scope, int64_t query_axes) {
  if (query_axes != 3) return scope;
  return with_conditions(scope, [](const Condition& one) { return one.with_heads(); });
}

Scope of_head(const Scope& scope, int64_t entry, int64_t head) {
  return with_conditions(scope, [&](const Condition& one) { return one.of_head(entry, head); });
}

Scope chosen(const Scope& scope, const Tensor& query, const Tensor& key) {
  return with_conditions(scope, [&](const Condition& one) { return one.chosen(query, key); });
}

const EdgeTensors* edge_tensors(const Scope& scope) {
  if (scope.any_of.size() != 1) return nullptr;
  const EdgeTensors* found = nullptr;
  for (const ConditionPointer& condition : scope.any_of[0]) {
    const EdgeTensors* lists = condition->edges();
    if (lists && found) return nullptr;
    if (lists) found = lists;
  }
  return found;
}

int64_t longest_list(const EdgeTensors& lists) {
  if (lists.offsets.numel() == 0) return 0;
  return (lists.offsets.select(-1, -1) - lists.offsets.select(-1, 0)).max().item<int64_t>();
}

bool is_causal(const Scope& scope) {
  const auto is_clause_causal = [](const Clause& clause) {
    return std::any_of(clause.begin(), clause.end(),
                       [](const ConditionPointer& one) { return one->is_causal(); });
  };
  return !scope.any_of.empty() &&
         std::all_of(scope.any_of.begin(), scope.any_of.end(), is_clause_causal);
}

bool depends_on_data(const Scope& scope) {
  return std::any_of(scope.any_of.begin(), scope.any_of.end(), [](const Clause& clause) {
    return std::any_of(clause.begin(), clause.end(),
                       [](const ConditionPointer& one) { return one->depends_on_data(); });
  });
}

std::optional<int64_t> last_key(const Scope& scope) {
  if (scope.any_of.size() != 1 || scope.any_of[0].empty()) return std::nullopt;
  std::optional<int64_t> last;
  for (const ConditionPointer& condition : scope.any_of[0]) {
    const std::optional<int64_t> one = condition->last_key(unbounded);
    if (!one) return std::nullopt;
    last = last ? std::min(*last, *one) : one;
  }
  return last;
}

void check_scope(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  for (const Clause& clause : scope.any_of)
    for (const ConditionPointer& condition : clause)
      condition->check({batch, heads, queries, keys});
}

Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                  const at::Device& device) {
  check_scope(scope, batch, heads, queries, keys);
  Tensor mask;
  for (const Clause& clause : scope.any_of) {
    Tensor conjunction;
    for (const ConditionPointer& condition : clause)
      conjunction = both(conjunction, condition->mask({batch, heads, queries, keys}, device),
                         [](const Tensor& a, const Tensor& b) { return at::logical_and(a, b); });
    if (!conjunction.defined()) return {};
    mask = both(mask, conjunction,
                [](const Tensor& a, const Tensor& b) { return at::logical_or(a, b); });
  }
  return mask;
}

}  // namespace attend
