#pragma once

#include <string_view>
#include <vector>

#include "tests/ops/tape_reference.h"

// Scores of the reference with their rounding errors.
namespace attend::reference {

using Vector = std::vector<Number>;

// Twice the longest chain of roundings in a score: two maps and a sum, with four terms each.
inline constexpr Real roundings = 24;
// Additional roundings in the normaliser, in sums over keys and in backward.
inline constexpr Real later_roundings = 48;

Vector row_of(const Array& array, int64_t row);

// One query and one key, with the earlier weights.
struct Pair {
  const Arrays& in;
  const Precision& precision;
  uint64_t draw;
  int64_t i, j;
  const Vector &previous, &total;
  const std::vector<Real>& reach;  // per hidden unit: its largest query or key

  Real least() const { return precision.least / precision.unit; }

  const Array& get(const char* name) const { return in.find(name)->second; }
  bool has(const char* name) const { return in.contains(name); }
  // W x; without the parameter W, x.
  Vector projected(const char* name, const Vector& x) const;
  Vector query() const { return row_of(get("query"), i); }
  Vector key() const { return row_of(get("key"), j); }
};

// Possible rounding of x, a number computed from a key. Equal keys have equal noise, because every
// correct computation keeps them equal. Draw 0 adds none. Draw 1 rounds to the nearest of a few
// numbers, so that close numbers become equal. Other draws come in pairs of opposite signs.
Real noise(const Number& x, const Pair& p);

bool is_additive(std::string_view score);
Vector mapped_query(std::string_view score, const Pair& p);
Vector mapped_key(std::string_view score, const Pair& p);

// The score with its bias, divided by the temperature.
Number score_of(const TapeProblem& problem, const Pair& p, Real temperature);

}  // namespace attend::reference
