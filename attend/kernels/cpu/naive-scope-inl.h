#pragma once

#include <algorithm>
#include <cmath>
#include <variant>

#include "attend/kernels/scope.h"

// The conditions of scope.h, evaluated for one pair of query and key.

namespace attend::kernels {

inline bool sees(const Window& w, const Row& row, int64_t key) {
  const int64_t own = w.offsets == nullptr ? 0 : w.offsets[row.batch];
  const int64_t ahead = key - row.query - w.offset - own;
  return -w.left <= ahead && ahead <= w.right && ahead % w.dilation == 0;
}

inline bool sees(const KeyLengths& c, const Row& row, int64_t key) {
  return key < c.lengths[row.batch];
}

inline bool sees(const QueryLengths& c, const Row& row, int64_t) {
  return row.query < c.lengths[row.batch];
}

inline bool sees(const Prefix& c, const Row&, int64_t key) { return key < c.length; }

inline bool sees(const GlobalRows& c, const Row& row, int64_t) { return row.query < c.rows; }

inline bool sees(const Segments& c, const Row& row, int64_t key) {
  for (int64_t n = 0; n < c.count; ++n) {
    const bool query_in = c.query_starts[n] <= row.query && row.query < c.query_starts[n + 1];
    if (query_in && c.key_starts[n] <= key && key < c.key_starts[n + 1]) return true;
  }
  return false;
}

inline bool sees(const BlockLayout& c, const Row& row, int64_t key) {
  const int64_t line = (row.query + c.first_query) / c.rows();
  const int64_t column = (key + c.first_key) / c.block;
  const uint8_t* own = c.layout + row.batch * c.batch_stride + row.head * c.head_stride;
  return column < c.columns && own[line * c.columns + column] != 0;
}

inline bool sees(const DenseMask& c, const Row& row, int64_t key) {
  return c.mask[row.batch * c.batch_stride + row.head * c.head_stride + row.query * c.query_stride +
                key * c.key_stride] != 0;
}

inline bool sees(const Around& c, const Row& row, int64_t key) {
  const double centre =
      c.centres[row.batch * c.batch_stride + row.head * c.head_stride + row.query * c.query_stride];
  return std::abs(static_cast<double>(key) - centre) <= static_cast<double>(c.reach);
}

inline bool sees(const EdgeLists& c, const Row& row, int64_t key) {
  const int64_t* ends =
      c.offsets + row.batch * c.batch_stride + row.head * c.head_stride + row.query;
  for (int64_t n = ends[0]; n < ends[1]; ++n) {
    if (c.keys[n] == key) return true;
  }
  return false;
}

inline bool sees(const Scope& scope, const Row& row, int64_t key) {
  const auto holds = [&](const Condition& condition) {
    return std::visit([&](const auto& c) { return sees(c, row, key); }, condition);
  };
  const auto all = [&](const Clause& clause) {
    return std::all_of(clause.begin(), clause.end(), holds);
  };
  return scope.any_of.empty() || std::any_of(scope.any_of.begin(), scope.any_of.end(), all);
}

}  // namespace attend::kernels
