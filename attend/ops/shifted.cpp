// Scopes and biases of queries and keys that are part of a longer sequence.
#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/biases.h"
#include "attend/ops/scope_checks-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Places first ... first + count - 1 of the axis; `parts` says what it has and what was asked for.
Tensor narrowed(const Tensor& x, int64_t axis, int64_t first, int64_t count, const char* name,
                const char* parts) {
  const int64_t size = x.size(axis);
  const int64_t wanted = count == unbounded ? std::max<int64_t>(size - first, 0) : count;
  if (first < 0 || first > size - wanted)
    fail("[shifted] {} of shape [{}] has {} {} {} to {} were asked for", name,
         fmt::join(x.sizes(), ", "), size, parts, first, first + wanted - 1);
  return x.narrow(axis, first, wanted);
}

// The columns of those keys; all of it where there is one column.
Tensor columns_from(const Tensor& x, int64_t first, int64_t keys, const char* name) {
  if (x.dim() == 0 || x.size(-1) == 1) return x;
  return narrowed(x, -1, first, keys, name, "columns; keys");
}

struct ShiftCondition {
  int64_t offset, queries;

  Condition operator()(Window window) const {
    window.offset = std::clamp(window.offset, -farthest_offset, farthest_offset) +
                    std::clamp(offset, -farthest_offset, farthest_offset);
    return window;
  }
  Condition operator()(const KeyLengths& condition) const { return condition; }
  Condition operator()(const QueryLengths& condition) const {
    return QueryLengths{(condition.lengths - offset).clamp(0, queries)};
  }
  Condition operator()(const Prefix& condition) const { return condition; }
  Condition operator()(const GlobalRows& global) const {
    return GlobalRows{std::max<int64_t>(global.rows - offset, 0)};
  }
  Condition operator()(const Segments& segments) const {
    return Segments{(segments.query_starts - offset).clamp(0, queries), segments.key_starts};
  }
  Condition operator()(const BlockLayout& blocks) const {
    const int64_t first = blocks.first_query + offset, within = first % blocks.block;
    const Tensor rows =
        narrowed(blocks.layout, 0, first / blocks.block,
                 queries == unbounded ? unbounded : blocks_of(blocks.block, within, queries),
                 "the block layout", "rows; blocks of queries");
    return BlockLayout{rows, blocks.block, within, blocks.first_key};
  }
  Condition operator()(const DenseMask& condition) const {
    return DenseMask{rows_from(condition.mask, -2, offset, queries, "the mask")};
  }
  Condition operator()(const Around& condition) const {
    return Around{rows_from(condition.centres, -1, offset, queries, "the scope's centres"),
                  condition.reach};
  }
};

struct ShiftKeysOfCondition {
  int64_t first, keys;

  int64_t within(int64_t end) const { return std::clamp<int64_t>(end - first, 0, keys); }

  Condition operator()(Window window) const {
    window.offset = std::clamp(window.offset, -farthest_offset, farthest_offset) - first;
    return window;
  }
  Condition operator()(const KeyLengths& condition) const {
    return KeyLengths{(condition.lengths - first).clamp(0, keys)};
  }
  Condition operator()(const QueryLengths& condition) const { return condition; }
  Condition operator()(const Prefix& prefix) const { return Prefix{within(prefix.length)}; }
  Condition operator()(const GlobalRows& global) const { return global; }
  Condition operator()(const Segments& segments) const {
    return Segments{segments.query_starts, (segments.key_starts - first).clamp(0, keys)};
  }
  Condition operator()(const BlockLayout& blocks) const {
    const int64_t begin = blocks.first_key + first, within_block = begin % blocks.block;
    const Tensor columns = narrowed(blocks.layout, 1, begin / blocks.block,
                                    blocks_of(blocks.block, within_block, keys), "the block layout",
                                    "columns; blocks of keys");
    return BlockLayout{columns, blocks.block, blocks.first_query, within_block};
  }
  Condition operator()(const DenseMask& condition) const {
    return DenseMask{columns_from(condition.mask, first, keys, "the mask")};
  }
  Condition operator()(const Around& condition) const {
    // A 16-bit centre that is moved would be rounded.
    return Around{condition.centres.to(at::kDouble) - first, condition.reach};
  }
};

struct ShiftTerm {
  int64_t offset, queries;

  BiasTerm operator()(const DenseBias& term) const {
    return DenseBias{rows_from(term.bias, -2, offset, queries, "the dense bias")};
  }
  BiasTerm operator()(const GaussianBias& term) const {
    return GaussianBias{rows_from(term.centres, -1, offset, queries, "the gaussian's centres"),
                        rows_from(term.widths, -1, offset, queries, "the gaussian's widths")};
  }
  template <class Placed>
  BiasTerm operator()(Placed term) const {
    term.offset += offset;
    return term;
  }
};

struct ShiftKeysOfTerm {
  int64_t first, keys;

  BiasTerm operator()(const DenseBias& term) const {
    return DenseBias{columns_from(term.bias, first, keys, "the dense bias")};
  }
  BiasTerm operator()(const GaussianBias& term) const {
    return GaussianBias{term.centres - first, term.widths};
  }
  BiasTerm operator()(GridBias term) const {
    term.first_key += first;
    return term;
  }
  template <class Placed>
  BiasTerm operator()(Placed term) const {
    term.offset -= first;
    return term;
  }
};

template <class Visitor>
Scope with_conditions(Scope scope, const Visitor& visitor) {
  check_conditions(scope);
  for (Clause& clause : scope.any_of)
    for (Condition& condition : clause) condition = std::visit(visitor, condition);
  return scope;
}

template <class Visitor>
Bias with_terms(Bias bias, const Visitor& visitor) {
  for (BiasTerm& term : bias.terms) term = std::visit(visitor, term);
  return bias;
}

}  // namespace

Tensor rows_from(const Tensor& x, int64_t axis, int64_t offset, int64_t queries, const char* name) {
  if (!x.defined() || x.dim() < -axis || x.size(axis) == 1) return x;
  return narrowed(x, axis, offset, queries, name, "rows; queries");
}

Scope shifted(const Scope& scope, int64_t offset, int64_t queries) {
  return with_conditions(scope, ShiftCondition{offset, queries});
}

Scope shifted_keys(const Scope& scope, int64_t first, int64_t keys) {
  return with_conditions(scope, ShiftKeysOfCondition{first, keys});
}

Bias shifted(const Bias& bias, int64_t offset, int64_t queries) {
  return with_terms(bias, ShiftTerm{offset, queries});
}

Bias shifted_keys(const Bias& bias, int64_t first, int64_t keys) {
  return with_terms(bias, ShiftKeysOfTerm{first, keys});
}

}  // namespace attend
