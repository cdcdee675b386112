#pragma once

#include <string_view>
#include <vector>

#include "tests/ops/tape_reference.h"

// Scores of the reference with what rounding may do to them.
namespace attend::reference {

using Vector = std::vector<Number>;

// Twice the longest chain of roundings behind a score: two maps and a sum of four terms each.
inline constexpr Real roundings = 24;
// What the normaliser, the sums over keys and the ways back add.
inline constexpr Real later_roundings = 48;

Vector row_of(const Array& array, int64_t row);

// One query and one key, and the earlier weights.
struct Pair {
  const Arrays& in;
  const Precision& precision;
  uint64_t draw;
  int64_t i, j;
  const Vector &previous, &total;
  const std::vector<Real>& reach;  // of the hidden dimensions: their largest query or key

  Real least() const { return precision.least / precision.unit; }

  const Array& get(const char* name) const { return in.find(name)->second; }
  Vector query() const { return row_of(get("query"), i); }
  Vector key() const { return row_of(get("key"), j); }
};

// How far rounding may have moved x, a number made of a key: the same for the same key, which every
// right way to compute them leaves equal. Draw 0 moves nothing; draw 1 to the nearest of a few
// numbers, so that near ones meet; the others come in pairs of opposite signs.
Real noise(const Number& x, const Pair& p);

bool is_additive(std::string_view score);
Vector mapped_query(std::string_view score, const Pair& p);
Vector mapped_key(std::string_view score, const Pair& p);

// The score with its bias, over the temperature.
Number score_of(const TapeProblem& problem, const Pair& p, Real temperature);

}  // namespace attend::reference
