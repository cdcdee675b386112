// Moves the positions of the queries into the scope and the bias.
#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Largest lengths of each batch entry over the clauses; undefined if a clause has no lengths.
Tensor lengths_in(const Scope& scope, Tensor Lengths::*which) {
  Tensor longest;
  for (const Clause& clause : scope.any_of) {
    Tensor own;
    for (const ConditionPointer& condition : clause)
      if (const Tensor lengths = condition->lengths().*which; lengths.defined())
        own = lengths.to(at::kCPU);
    if (!own.defined()) return {};
    longest = longest.defined() ? at::maximum(longest, own) : own;
  }
  return longest;
}

// Returns [B] or one number.
Tensor aligned_at_last(const Scope& scope, int64_t queries, int64_t keys) {
  Tensor offsets = at::tensor({keys - queries}, at::kLong);
  if (const Tensor own = lengths_in(scope, &Lengths::keys); own.defined())
    offsets = offsets + own - keys;
  if (const Tensor own = lengths_in(scope, &Lengths::queries); own.defined())
    offsets = offsets - own + queries;
  return offsets;
}

}  // namespace

Tensor offsets_of_queries(const AttentionSpec& spec, int64_t batch, int64_t queries, int64_t keys) {
  Tensor offsets = at::zeros({1}, at::kLong);
  if (spec.align == Align::last) offsets = aligned_at_last(spec.scope, queries, keys);
  if (const Tensor& given = spec.query_offsets; given.defined()) {
    if (given.scalar_type() != at::kLong || given.dim() > 1 ||
        (given.dim() == 1 && given.size(0) != batch))
      fail(
          "[attention] query_offsets are {} of shape [{}]; they must be int64 of shape [batch], {} "
          "of them, or one number",
          c10::toString(given.scalar_type()), fmt::join(given.sizes(), ", "), batch);
    offsets = offsets + given.to(at::kCPU);
  }
  return offsets.clamp(-farthest_offset, farthest_offset);
}

namespace {

QueryOffset place_of(const AttentionSpec& spec, int64_t batch, int64_t queries, int64_t keys) {
  const Tensor offsets = offsets_of_queries(spec, batch, queries, keys);
  if (offsets.numel() == 0) return {.queries = queries};
  const auto least = offsets.min().item<int64_t>();
  if (least == offsets.max().item<int64_t>()) return {.common = least, .queries = queries};
  return {.by_entry = offsets, .queries = queries};
}

}  // namespace

Align parse_align(std::string_view text) {
  if (text == "first") return Align::first;
  if (text == "last") return Align::last;
  fail("align is {}; it must be first or last", in_quotes(text));
}

AttentionSpec placed(const AttentionSpec& spec, int64_t batch, int64_t queries, int64_t keys) {
  if (spec.align == Align::first && !spec.query_offsets.defined()) return spec;
  const QueryOffset place = place_of(spec, batch, queries, keys);
  AttentionSpec result = spec;
  result.align = Align::first;
  result.query_offsets = Tensor();
  result.scope = placed(spec.scope, place);
  result.bias = placed(spec.bias, place);
  return result;
}

}  // namespace attend
