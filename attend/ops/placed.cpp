// The positions of queries among keys, taken into the scope and the bias.
#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/scope_checks-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Where query 0 stands.
struct Place {
  int64_t common = 0;
  Tensor by_entry = {};  // int64 [B], on the CPU; undefined: the common one for every batch entry
  int64_t queries = 0;

  Tensor with(const Tensor& offsets) const {
    if (!by_entry.defined()) return offsets;
    return offsets.defined() ? offsets.to(at::kCPU) + by_entry : by_entry;
  }
};

// The lengths of the batch entries; undefined where a clause asks for none.
Tensor lengths_in(const Scope& scope, Tensor (*lengths_of)(const Condition&)) {
  Tensor longest;
  for (const Clause& clause : scope.any_of) {
    Tensor own;
    for (const Condition& condition : clause)
      if (const Tensor lengths = lengths_of(condition); lengths.defined()) own = lengths;
    if (!own.defined()) return {};
    longest = longest.defined() ? at::maximum(longest, own) : own;
  }
  return longest;
}

template <class Lengths>
Tensor lengths_of(const Condition& condition) {
  const auto* of_entries = std::get_if<Lengths>(&condition);
  return of_entries ? of_entries->lengths.to(at::kCPU) : Tensor();
}

// [B], or one number.
Tensor aligned_at_last(const Scope& scope, int64_t queries, int64_t keys) {
  Tensor offsets = at::tensor({keys - queries}, at::kLong);
  if (const Tensor own = lengths_in(scope, lengths_of<KeyLengths>); own.defined())
    offsets = offsets + own - keys;
  if (const Tensor own = lengths_in(scope, lengths_of<QueryLengths>); own.defined())
    offsets = offsets - own + queries;
  return offsets;
}

Place place_of(const AttentionSpec& spec, int64_t batch, int64_t queries, int64_t keys) {
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
  if (offsets.numel() == 0) return {.queries = queries};
  offsets = offsets.clamp(-farthest_offset, farthest_offset);
  const auto least = offsets.min().item<int64_t>();
  if (least == offsets.max().item<int64_t>()) return {.common = least, .queries = queries};
  return {.by_entry = offsets, .queries = queries};
}

struct PlaceCondition {
  const Place& place;

  Condition operator()(Window window) const {
    window.offset = std::clamp(window.offset, -farthest_offset, farthest_offset) + place.common;
    window.offsets = place.with(window.offsets);
    return window;
  }
  Condition operator()(const GlobalRows& global) const {
    if (place.by_entry.defined())
      return QueryLengths{(global.rows - place.by_entry).clamp(0, place.queries)};
    return GlobalRows{std::clamp<int64_t>(global.rows - place.common, 0, place.queries)};
  }
  template <class OfTheCall>
  Condition operator()(const OfTheCall& condition) const {
    return condition;
  }
};

struct PlaceTerm {
  const Place& place;

  BiasTerm operator()(const DenseBias& term) const { return term; }
  BiasTerm operator()(const GaussianBias& term) const { return term; }
  BiasTerm operator()(GridBias term) const {
    if (place.by_entry.defined())
      fail(
          "[attention] the grid bias has the queries of every batch entry at one place, and theirs "
          "differ; compute the entries one by one");
    term.offset += place.common;
    return term;
  }
  template <class OfDistances>
  BiasTerm operator()(OfDistances term) const {
    term.offset += place.common;
    term.offsets = place.with(term.offsets);
    return term;
  }
};

}  // namespace

Align parse_align(std::string_view text) {
  if (text == "first") return Align::first;
  if (text == "last") return Align::last;
  fail("align is {}; it must be first or last", in_quotes(text));
}

AttentionSpec placed(const AttentionSpec& spec, int64_t batch, int64_t queries, int64_t keys) {
  if (spec.align == Align::first && !spec.query_offsets.defined()) return spec;
  check_conditions(spec.scope);
  const Place place = place_of(spec, batch, queries, keys);
  AttentionSpec result = spec;
  result.align = Align::first;
  result.query_offsets = Tensor();
  for (Clause& clause : result.scope.any_of)
    for (Condition& condition : clause) condition = std::visit(PlaceCondition{place}, condition);
  for (BiasTerm& term : result.bias.terms) term = std::visit(PlaceTerm{place}, term);
  return result;
}

}  // namespace attend
