// Scopes and biases as later queries see them.
#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/biases.h"
#include "attend/ops/scope_checks-inl.h"

namespace attend {
namespace {

using at::Tensor;

struct ShiftCondition {
  int64_t offset, queries;

  Condition operator()(Window window) const {
    window.offset = std::clamp(window.offset, -farthest_offset, farthest_offset) +
                    std::clamp(offset, -farthest_offset, farthest_offset);
    return window;
  }
  Condition operator()(const KeyLengths& condition) const { return condition; }
  Condition operator()(const Prefix& condition) const { return condition; }
  Condition operator()(const GlobalRows& global) const {
    return GlobalRows{std::max<int64_t>(global.rows - offset, 0)};
  }
  Condition operator()(const Segments& segments) const {
    return Segments{(segments.query_starts - offset).clamp(0, queries), segments.key_starts};
  }
  Condition operator()(const BlockLayout& blocks) const {
    const int64_t first = offset / blocks.block, within = offset % blocks.block;
    if (within != 0 && queries != 1)
      fail(
          "[shifted] a block layout moves by whole blocks of {}, or for one query at a time; got "
          "{} queries from {} on",
          blocks.block, queries, offset);
    const int64_t rows = blocks.layout.size(0) - first;
    const int64_t count =
        queries == unbounded ? rows : queries / blocks.block + (queries % blocks.block != 0);
    if (first < 0 || rows < 0 || count > rows)
      fail(
          "[shifted] the block layout has {} rows of blocks of {}; queries from {} on were asked "
          "for",
          blocks.layout.size(0), blocks.block, offset);
    return BlockLayout{blocks.layout.narrow(0, first, count), blocks.block};
  }
  Condition operator()(const DenseMask& condition) const {
    return DenseMask{rows_from(condition.mask, -2, offset, queries, "the mask")};
  }
  Condition operator()(const Around& condition) const {
    return Around{rows_from(condition.centres, -1, offset, queries, "the scope's centres"),
                  condition.reach};
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

}  // namespace

Tensor rows_from(const Tensor& x, int64_t axis, int64_t offset, int64_t queries, const char* name) {
  if (!x.defined() || x.dim() < -axis || x.size(axis) == 1) return x;
  const int64_t rows = x.size(axis);
  const int64_t count = queries == unbounded ? std::max<int64_t>(rows - offset, 0) : queries;
  if (offset < 0 || offset > rows - count)
    fail("[shifted] {} of shape [{}] has {} rows; queries {} to {} were asked for", name,
         fmt::join(x.sizes(), ", "), rows, offset, offset + count - 1);
  return x.narrow(axis, offset, count);
}

Scope shifted(const Scope& scope, int64_t offset, int64_t queries) {
  check_conditions(scope);
  Scope moved = scope;
  for (Clause& clause : moved.any_of) {
    for (Condition& condition : clause)
      condition = std::visit(ShiftCondition{offset, queries}, condition);
  }
  return moved;
}

Bias shifted(const Bias& bias, int64_t offset, int64_t queries) {
  Bias moved = bias;
  for (BiasTerm& term : moved.terms) term = std::visit(ShiftTerm{offset, queries}, term);
  return moved;
}

}  // namespace attend
