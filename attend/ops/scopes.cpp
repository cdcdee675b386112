#include "attend/ops/scopes.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/scope_checks-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Both hold, or either: undefined tensors stand for no condition.
template <class Combine>
Tensor both(const Tensor& a, const Tensor& b, Combine combine) {
  if (!a.defined()) return b;
  return b.defined() ? combine(a, b) : a;
}

Tensor intersection(const Tensor& a, const Tensor& b) { return at::logical_and(a, b); }

Scope one_condition(Condition condition) { return {{{std::move(condition)}}}; }

// What both conditions ask for as one condition, where their kind has one.
std::optional<Condition> merged(const Window& a, const Window& b) {
  const bool of_one_place = a.offset == b.offset && a.offsets.is_same(b.offsets);
  if (!of_one_place || a.dilation != b.dilation) return std::nullopt;
  return Window{std::min(a.left, b.left), std::min(a.right, b.right), a.offset, a.dilation,
                a.offsets};
}

Tensor shorter(const Tensor& a, const Tensor& b, const char* what) {
  if (a.size(0) != b.size(0))
    fail("[attention] {} lengths of {} and of {} batch elements do not intersect", what, a.size(0),
         b.size(0));
  return at::minimum(a, b);
}

std::optional<Condition> merged(const KeyLengths& a, const KeyLengths& b) {
  return KeyLengths{shorter(a.lengths, b.lengths, "key")};
}

std::optional<Condition> merged(const QueryLengths& a, const QueryLengths& b) {
  return QueryLengths{shorter(a.lengths, b.lengths, "query")};
}

std::optional<Condition> merged(const Prefix& a, const Prefix& b) {
  return Prefix{std::min(a.length, b.length)};
}

std::optional<Condition> merged(const GlobalRows& a, const GlobalRows& b) {
  return GlobalRows{std::min(a.rows, b.rows)};
}

std::optional<Condition> merged(const DenseMask& a, const DenseMask& b) {
  for (int64_t i = 1; i <= std::min(a.mask.dim(), b.mask.dim()); ++i) {
    if (a.mask.size(-i) != b.mask.size(-i) && a.mask.size(-i) != 1 && b.mask.size(-i) != 1)
      fail("[attention] masks of shapes [{}] and [{}] do not broadcast to each other",
           fmt::join(a.mask.sizes(), ", "), fmt::join(b.mask.sizes(), ", "));
  }
  return DenseMask{intersection(a.mask, b.mask)};
}

template <class A, class B>
std::optional<Condition> merged(const A&, const B&) {
  return std::nullopt;
}

void add_condition(Clause& clause, const Condition& added) {
  for (Condition& condition : clause) {
    auto one =
        std::visit([](const auto& a, const auto& b) { return merged(a, b); }, condition, added);
    if (!one) continue;
    condition = std::move(*one);
    return;
  }
  clause.push_back(added);
}

struct MaskShape {
  int64_t batch, heads, queries, keys;
  at::Device device;

  Tensor positions(int64_t count) const {
    return at::arange(count, at::TensorOptions().dtype(at::kLong).device(device));
  }
  Tensor rows() const { return positions(queries).unsqueeze(1); }
  Tensor columns() const { return positions(keys).unsqueeze(0); }
};

Tensor allowed(const Window& window, const MaskShape& shape) {
  const int64_t offset = std::clamp(window.offset, -farthest_offset, farthest_offset);
  Tensor distance = shape.columns() - shape.rows() - offset;
  if (window.offsets.defined())
    distance = distance - window.offsets.to(shape.device)
                              .clamp(-farthest_offset, farthest_offset)
                              .view({shape.batch, 1, 1, 1});
  const Tensor band = intersection(-distance <= std::min(window.left, unbounded),
                                   distance <= std::min(window.right, unbounded));
  return window.dilation == 1 ? band
                              : intersection(band, at::remainder(distance, window.dilation) == 0);
}

Tensor allowed(const KeyLengths& condition, const MaskShape& shape) {
  const Tensor lengths = condition.lengths.to(shape.device).unsqueeze(1);
  return (shape.columns() < lengths).view({shape.batch, 1, 1, shape.keys});
}

Tensor allowed(const QueryLengths& condition, const MaskShape& shape) {
  const Tensor lengths = condition.lengths.to(shape.device).unsqueeze(1);
  return (shape.positions(shape.queries) < lengths).view({shape.batch, 1, shape.queries, 1});
}

Tensor allowed(const Prefix& prefix, const MaskShape& shape) {
  return shape.columns() < prefix.length;
}

Tensor allowed(const GlobalRows& global, const MaskShape& shape) {
  return shape.rows() < global.rows;
}

// The segment of each position, counted from 1; 0 before the first and after the last.
Tensor segment_of(const Tensor& starts, const Tensor& positions) {
  const Tensor passed = (positions.unsqueeze(1) >= starts.to(positions.device())).sum(1);
  return passed.masked_fill(passed == starts.size(0), 0);
}

Tensor allowed(const Segments& segments, const MaskShape& shape) {
  const Tensor of_row = segment_of(segments.query_starts, shape.positions(shape.queries));
  const Tensor of_key = segment_of(segments.key_starts, shape.positions(shape.keys));
  return (of_row.unsqueeze(1) == of_key.unsqueeze(0)).logical_and_((of_row > 0).unsqueeze(1));
}

Tensor allowed(const BlockLayout& blocks, const MaskShape& shape) {
  const auto block_of = [&](int64_t first, int64_t count) {
    return at::floor_divide(shape.positions(count) + first, blocks.block);
  };
  return blocks.layout.to(shape.device)
      .index_select(0, block_of(blocks.first_query, shape.queries))
      .index_select(1, block_of(blocks.first_key, shape.keys));
}

Tensor allowed(const DenseMask& condition, const MaskShape& shape) {
  return condition.mask.to(shape.device);
}

Tensor allowed(const Around& condition, const MaskShape& shape) {
  // In float64 16-bit centres and far positions compare as they are.
  const Tensor centres = condition.centres.detach().to(at::kDouble).unsqueeze(-1);
  const Tensor key = at::arange(shape.keys, centres.options());
  const Tensor mask = (key - centres).abs() <= static_cast<double>(condition.reach);
  return mask.to(shape.device);
}

}  // namespace

Scope all_keys() { return {}; }
Scope causal(int64_t offset) { return one_condition(Window{.right = 0, .offset = offset}); }
Scope window(int64_t reach) { return window(reach, reach); }
Scope window(int64_t left, int64_t right) { return window(Window{.left = left, .right = right}); }

Scope window(const Window& window) {
  check_condition(window);
  return one_condition(window);
}

Scope key_lengths(Tensor lengths) {
  KeyLengths condition{std::move(lengths)};
  check_condition(condition);
  return one_condition(std::move(condition));
}

Scope query_lengths(Tensor lengths) {
  QueryLengths condition{std::move(lengths)};
  check_condition(condition);
  return one_condition(std::move(condition));
}

Scope prefix(int64_t length) {
  check_condition(Prefix{length});
  return one_condition(Prefix{length});
}

Scope global_tokens(int64_t count) {
  check_condition(GlobalRows{count});
  return prefix(count) | one_condition(GlobalRows{count});
}

Scope segments(const Tensor& starts) { return segments(starts, starts); }

Scope segments(Tensor query_starts, Tensor key_starts) {
  Segments condition{std::move(query_starts), std::move(key_starts)};
  check_condition(condition);
  return one_condition(std::move(condition));
}

Scope block_sparse(Tensor layout, int64_t block) {
  BlockLayout condition{std::move(layout), block};
  check_condition(condition);
  return one_condition(std::move(condition));
}

Scope dense_mask(Tensor mask) {
  DenseMask condition{std::move(mask)};
  check_condition(condition);
  return one_condition(std::move(condition));
}

Scope around(Tensor centres, int64_t reach) {
  Around condition{std::move(centres), reach};
  check_condition(condition);
  return one_condition(std::move(condition));
}

Scope operator&(const Scope& a, const Scope& b) {
  if (a.any_of.empty()) return b;
  if (b.any_of.empty()) return a;
  for (const Scope* scope : {&a, &b}) check_conditions(*scope);
  Scope both;
  both.any_of.reserve(a.any_of.size() * b.any_of.size());
  for (const Clause& first : a.any_of) {
    for (const Clause& second : b.any_of) {
      Clause& clause = both.any_of.emplace_back(first);
      for (const Condition& condition : second) add_condition(clause, condition);
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

bool is_causal(const Scope& scope) {
  const auto ends_at_query = [](const Condition& condition) {
    const auto* window = std::get_if<Window>(&condition);
    if (!window) return false;
    const bool by_entry = window->offsets.defined() && window->offsets.numel() > 0;
    const int64_t farthest = by_entry ? window->offsets.max().item<int64_t>() : 0;
    return window->right <= -std::clamp(window->offset, -farthest_offset, farthest_offset) -
                                std::clamp(farthest, -farthest_offset, farthest_offset);
  };
  const auto is_clause_causal = [&](const Clause& clause) {
    return std::any_of(clause.begin(), clause.end(), ends_at_query);
  };
  return !scope.any_of.empty() &&
         std::all_of(scope.any_of.begin(), scope.any_of.end(), is_clause_causal);
}

Scope with_four_axes(const Scope& scope, int64_t query_axes) {
  Scope result = scope;
  for (Clause& clause : result.any_of) {
    for (Condition& condition : clause) {
      auto* dense = std::get_if<DenseMask>(&condition);
      if (query_axes == 3 && dense && dense->mask.defined() && dense->mask.dim() == 3)
        dense->mask = dense->mask.unsqueeze(1);
      auto* near = std::get_if<Around>(&condition);
      if (query_axes == 3 && near && near->centres.defined() && near->centres.dim() == 2)
        near->centres = near->centres.unsqueeze(1);
    }
  }
  return result;
}

Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                  const at::Device& device) {
  check_scope(scope, batch, heads, queries, keys);
  const MaskShape shape{batch, heads, queries, keys, device};
  Tensor mask;
  for (const Clause& clause : scope.any_of) {
    Tensor conjunction;
    for (const Condition& condition : clause) {
      conjunction = both(
          conjunction, std::visit([&](const auto& one) { return allowed(one, shape); }, condition),
          intersection);
    }
    if (!conjunction.defined()) return {};
    mask = both(mask, conjunction,
                [](const Tensor& a, const Tensor& b) { return at::logical_or(a, b); });
  }
  return mask;
}

}  // namespace attend
