#include "attend/kernels/scope.h"

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/kernels/check.h"

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

void check_ascending(const char* name, const int64_t* starts, int64_t count) {
  for (int64_t n = 0; n < count; ++n) {
    if (starts[n] < 0 || starts[n] > starts[n + 1])
      fail("[attention] segments.{} goes from {} to {}; starts must ascend from 0", name, starts[n],
           starts[n + 1]);
  }
}

}  // namespace

KeyRange Window::hull(const Row& row, int64_t keys) const {
  const int64_t middle = centre(row);
  return {std::max<int64_t>(0, middle - left), std::min(keys, middle + right + 1)};
}

bool Window::allows(const Row& row, int64_t key) const {
  return (key - centre(row)) % dilation == 0;
}

void Window::check(const Shape&) const {
  if (left < 0 || right < 0)
    fail(
        "[attention] a window reaches {} to the left and {} to the right; neither must be "
        "negative",
        left, right);
  if (dilation < 1) fail("[attention] a window has dilation {}; it must be at least 1", dilation);
}

KeyRange KeyLengths::hull(const Row& row, int64_t keys) const {
  return {0, std::min(keys, lengths[row.batch])};
}

void KeyLengths::check(const Shape& shape) const {
  check_array("the key lengths of the scope", lengths, shape.batch);
  for (int64_t b = 0; b < shape.batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > shape.keys)
      fail(
          "[attention] key length {} of the scope is {}; it must be from 0 to the number of "
          "keys, {}",
          b, lengths[b], shape.keys);
  }
}

KeyRange QueryLengths::hull(const Row& row, int64_t keys) const {
  return {0, row.query < lengths[row.batch] ? keys : 0};
}

void QueryLengths::check(const Shape& shape) const {
  check_array("the query lengths of the scope", lengths, shape.batch);
}

KeyRange Prefix::hull(const Row&, int64_t keys) const { return {0, std::min(keys, length)}; }

void Prefix::check(const Shape&) const {
  if (length < 0) fail("[attention] a prefix has length {}; it must not be negative", length);
}

KeyRange GlobalRows::hull(const Row& row, int64_t keys) const {
  return {0, row.query < rows ? keys : 0};
}

void GlobalRows::check(const Shape&) const {
  if (rows < 0) fail("[attention] global rows are {}; they must not be negative", rows);
}

KeyRange Segments::hull(const Row& row, int64_t keys) const {
  const int64_t* after = std::upper_bound(query_starts, query_starts + count + 1, row.query);
  if (after == query_starts || after == query_starts + count + 1) return {0, 0};
  const int64_t segment = after - query_starts - 1;
  return {std::max<int64_t>(0, key_starts[segment]), std::min(keys, key_starts[segment + 1])};
}

void Segments::check(const Shape& shape) const {
  if (count < 0) fail("[attention] segments number {}; they must not be negative", count);
  check_array("segments.query_starts", query_starts, count + 1);
  check_array("segments.key_starts", key_starts, count + 1);
  check_ascending("query_starts", query_starts, count);
  check_ascending("key_starts", key_starts, count);
  if (key_starts[count] > shape.keys)
    fail("[attention] segments end at key {}; there are {} keys", key_starts[count], shape.keys);
}

KeyRange BlockLayout::hull(const Row& row, int64_t keys) const {
  const uint8_t* blocks = line(row);
  int64_t first = 0, last = columns;
  while (first < last && !blocks[first]) ++first;
  while (last > first && !blocks[last - 1]) --last;
  return {std::max<int64_t>(0, first * block - first_key),
          std::min(keys, last * block - first_key)};
}

bool BlockLayout::allows(const Row& row, int64_t key) const {
  return line(row)[(key + first_key) / block] != 0;
}

void BlockLayout::check(const Shape& shape) const {
  if (block < 1 || query_block < 0)
    fail("[attention] blocks of the scope have {} rows; 1 is the least", std::min(block, rows()));
  if (columns < 0)
    fail("[attention] the block layout has {} columns; they must not be negative", columns);
  for (const auto& [first, length] : {std::pair(first_query, rows()), std::pair(first_key, block)})
    if (first < 0 || first >= length)
      fail("[attention] the block layout begins at {} in its first block; it must be 0 to {}",
           first, length - 1);
  if (columns > 0 && columns - 1 > (shape.keys - 1 + first_key) / block)
    fail("[attention] the block layout has {} columns of {} keys; there are {} keys", columns,
         block, shape.keys);
  const bool any_head = shape.batch * shape.heads > 0;
  check_array("the block layout", layout, any_head ? shape.queries * columns : 0);
}

KeyRange DenseMask::hull(const Row&, int64_t keys) const { return {0, keys}; }

bool DenseMask::allows(const Row& row, int64_t key) const {
  return mask[row.batch * batch_stride + row.head * head_stride + row.query * query_stride +
              key * key_stride] != 0;
}

void DenseMask::check(const Shape& shape) const {
  check_array("the mask of the scope", mask,
              shape.batch * shape.heads * shape.queries * shape.keys);
}

KeyRange Around::hull(const Row& row, int64_t keys) const {
  const double centre =
      centres[row.batch * batch_stride + row.head * head_stride + row.query * query_stride];
  const auto away = static_cast<double>(reach);
  const auto is_near = [&](int64_t key) {
    return std::abs(static_cast<double>(key) - centre) <= away;
  };
  // Borders are rounded; the first and last key may be off by one.
  const auto key_at = [&](double place) {
    return static_cast<int64_t>(std::clamp(place, -1.0, static_cast<double>(keys)));
  };
  if (std::isnan(centre)) return {0, 0};
  int64_t begin = key_at(std::ceil(centre - away)), last = key_at(std::floor(centre + away));
  begin = is_near(begin - 1) ? begin - 1 : is_near(begin) ? begin : begin + 1;
  last = is_near(last + 1) ? last + 1 : is_near(last) ? last : last - 1;
  return {std::max<int64_t>(0, begin), std::min(keys, last + 1)};
}

void Around::check(const Shape& shape) const {
  check_array("the centres of the scope", centres, shape.batch * shape.heads * shape.queries);
  if (reach < 0)
    fail("[attention] the scope around centres reaches {} keys; it must not be negative", reach);
}

bool sees_key(const Clause& clause, const Row& row, int64_t key, int64_t keys) {
  return std::all_of(clause.begin(), clause.end(), [&](const Condition& condition) {
    const KeyRange range = condition_hull(condition, row, keys);
    return range.begin <= key && key < range.end && condition_allows(condition, row, key);
  });
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
  // Rows that each see few keys may leave gaps.
  const bool any = std::any_of(rows.ranges, rows.ranges + rows_, [&](const KeyRange& range) {
    return std::max(begin, range.begin) < std::min(end, range.end);
  });
  return any ? Cover::partial : Cover::empty;
}

// Reading the mask of a tile is much cheaper than computing the tile; finding empty and full tiles
// therefore pays off.
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
