#include "attend/kernels/scope.h"

#include <algorithm>
#include <cmath>

namespace attend::kernels {
namespace {

KeyRange overlap(KeyRange a, KeyRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

KeyRange condition_hull(const Condition& condition, const Row& row, int64_t keys) {
  return std::visit([&](const auto& c) { return c.hull(row, keys); }, condition);
}

bool condition_allows(const Condition& condition, const Row& row, int64_t key) {
  return std::visit([&](const auto& c) { return c.allows(row, key); }, condition);
}

bool clause_fills(const Clause& clause) {
  return std::all_of(clause.begin(), clause.end(), [](const Condition& condition) {
    return std::visit([](const auto& c) { return c.fills_hull(); }, condition);
  });
}

}  // namespace

KeyRange Window::hull(const Row& row, int64_t keys) const {
  const int64_t middle = centre(row);
  return {std::max<int64_t>(0, middle - left), std::min(keys, middle + right + 1)};
}

bool Window::allows(const Row& row, int64_t key) const {
  return (key - centre(row)) % dilation == 0;
}

KeyRange KeyLengths::hull(const Row& row, int64_t keys) const {
  return {0, std::min(keys, lengths[row.batch])};
}

KeyRange QueryLengths::hull(const Row& row, int64_t keys) const {
  return {0, row.query < lengths[row.batch] ? keys : 0};
}

KeyRange Prefix::hull(const Row&, int64_t keys) const { return {0, std::min(keys, length)}; }

KeyRange GlobalRows::hull(const Row& row, int64_t keys) const {
  return {0, row.query < rows ? keys : 0};
}

KeyRange Segments::hull(const Row& row, int64_t keys) const {
  const int64_t* after = std::upper_bound(query_starts, query_starts + count + 1, row.query);
  if (after == query_starts || after == query_starts + count + 1) return {0, 0};
  const int64_t segment = after - query_starts - 1;
  return {std::max<int64_t>(0, key_starts[segment]), std::min(keys, key_starts[segment + 1])};
}

KeyRange BlockLayout::hull(const Row& row, int64_t keys) const {
  const uint8_t* blocks = layout + (row.query + first_query) / block * columns;
  int64_t first = 0, last = columns;
  while (first < last && !blocks[first]) ++first;
  while (last > first && !blocks[last - 1]) --last;
  return {std::max<int64_t>(0, first * block - first_key),
          std::min(keys, last * block - first_key)};
}

bool BlockLayout::allows(const Row& row, int64_t key) const {
  return layout[(row.query + first_query) / block * columns + (key + first_key) / block] != 0;
}

KeyRange DenseMask::hull(const Row&, int64_t keys) const { return {0, keys}; }

bool DenseMask::allows(const Row& row, int64_t key) const {
  return mask[row.batch * batch_stride + row.head * head_stride + row.query * query_stride +
              key * key_stride] != 0;
}

KeyRange Around::hull(const Row& row, int64_t keys) const {
  const double centre =
      centres[row.batch * batch_stride + row.head * head_stride + row.query * query_stride];
  const auto away = static_cast<double>(reach);
  const auto is_near = [&](int64_t key) {
    return std::abs(static_cast<double>(key) - centre) <= away;
  };
  // Each border is rounded, so that the last key may be one further or nearer.
  const auto key_at = [&](double place) {
    return static_cast<int64_t>(std::clamp(place, -1.0, static_cast<double>(keys)));
  };
  if (std::isnan(centre)) return {0, 0};
  int64_t begin = key_at(std::ceil(centre - away)), last = key_at(std::floor(centre + away));
  begin = is_near(begin - 1) ? begin - 1 : is_near(begin) ? begin : begin + 1;
  last = is_near(last + 1) ? last + 1 : is_near(last) ? last : last - 1;
  return {std::max<int64_t>(0, begin), std::min(keys, last + 1)};
}

Scope causal(int64_t offset) { return {{{Window{.right = 0, .offset = offset}}}}; }

Scope intersect(const Scope& a, const Scope& b) {
  if (a.any_of.empty()) return b;
  if (b.any_of.empty()) return a;
  Scope both;
  for (const Clause& x : a.any_of) {
    for (const Clause& y : b.any_of) {
      both.any_of.push_back(x);
      both.any_of.back().insert(both.any_of.back().end(), y.begin(), y.end());
    }
  }
  return both;
}

Scope unite(const Scope& a, const Scope& b) {
  if (a.any_of.empty() || b.any_of.empty()) return {};
  Scope either = a;
  either.any_of.insert(either.any_of.end(), b.any_of.begin(), b.any_of.end());
  return either;
}

BlockScope::BlockScope(const Scope& scope, const Row& first, int64_t rows, int64_t keys)
    : first_(first), rows_(rows), hull_{keys, 0} {
  static const Clause everything;
  const size_t count = std::max<size_t>(1, scope.any_of.size());
  clauses_.resize(count);
  for (size_t c = 0; c < count; ++c) {
    ClauseRows& clause = clauses_[c];
    clause.clause = scope.any_of.empty() ? &everything : &scope.any_of[c];
    clause.fills = clause_fills(*clause.clause);
    clause.outer = {keys, 0};
    clause.inner = {0, keys};
    for (int64_t r = 0; r < rows; ++r) {
      KeyRange range{0, keys};
      const Row row{first.batch, first.head, first.query + r};
      for (const Condition& condition : *clause.clause) {
        range = overlap(range, condition_hull(condition, row, keys));
      }
      clause.ranges[r] = range;
      clause.inner = overlap(clause.inner, range);
      if (range.begin >= range.end) continue;
      clause.outer = {std::min(clause.outer.begin, range.begin),
                      std::max(clause.outer.end, range.end)};
    }
    hull_ = {std::min(hull_.begin, clause.outer.begin), std::max(hull_.end, clause.outer.end)};
  }
}

Cover BlockScope::cover(int64_t begin, int64_t end) const {
  Cover best = Cover::empty;
  for (const ClauseRows& clause : clauses_) {
    const Cover cover = clause_cover(clause, begin, end);
    if (cover == Cover::full) return Cover::full;
    if (cover == Cover::partial) best = Cover::partial;
  }
  return best;
}

Cover BlockScope::clause_cover(const ClauseRows& rows, int64_t begin, int64_t end) const {
  if (end <= rows.outer.begin || begin >= rows.outer.end) return Cover::empty;
  if (!rows.fills) return inspect(rows, begin, end);
  if (rows.inner.begin <= begin && end <= rows.inner.end) return Cover::full;
  // Rows that see few keys each may leave gaps.
  const bool any = std::any_of(rows.ranges, rows.ranges + rows_, [&](const KeyRange& range) {
    return std::max(begin, range.begin) < std::min(end, range.end);
  });
  return any ? Cover::partial : Cover::empty;
}

// Reading a tile's mask is far cheaper than computing the tile: a block that is empty or full is
// worth finding.
Cover BlockScope::inspect(const ClauseRows& rows, int64_t begin, int64_t end) const {
  bool any = false, all = true;
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t j = begin; j < end; ++j) {
      const bool allowed = allows(rows, r, j);
      any |= allowed;
      all &= allowed;
      if (any && !all) return Cover::partial;
    }
  }
  return all ? Cover::full : any ? Cover::partial : Cover::empty;
}

bool BlockScope::allows(const ClauseRows& rows, int64_t row, int64_t key) const {
  if (key < rows.ranges[row].begin || key >= rows.ranges[row].end) return false;
  if (rows.fills) return true;
  const Row place{first_.batch, first_.head, first_.query + row};
  return std::all_of(rows.clause->begin(), rows.clause->end(), [&](const Condition& condition) {
    return condition_allows(condition, place, key);
  });
}

void BlockScope::fill_mask(int64_t begin, int64_t end, int64_t stride, uint8_t* allowed) const {
  for (int64_t j = begin; j < end; ++j) {
    uint8_t* row_of_key = allowed + (j - begin) * stride;
    std::fill(row_of_key, row_of_key + stride, uint8_t{0});
    for (const ClauseRows& clause : clauses_) {
      for (int64_t r = 0; r < rows_; ++r) row_of_key[r] |= allows(clause, r, j);
    }
  }
}

}  // namespace attend::kernels
