#include "attend/explain/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attend/base/error.h"

namespace attend {
namespace {

double pairs_of(size_t count) {
  const auto all = static_cast<double>(count);
  return all * (all - 1) / 2;
}

// Sorts the values. Returns the number of pairs that were in falling order. `room` has at least as
// many values.
double sort_and_count(std::span<double> values, std::span<double> room) {
  if (values.size() < 2) return 0;
  const auto left = values.first(values.size() / 2), right = values.subspan(left.size());
  double falling = sort_and_count(left, room) + sort_and_count(right, room);
  size_t i = 0, j = 0;
  const auto merged = room.first(values.size());
  for (double& next : merged) {
    if (j == right.size() || (i < left.size() && left[i] <= right[j])) {
      next = left[i++];
    } else {
      next = right[j++];
      falling += static_cast<double>(left.size() - i);
    }
  }
  std::ranges::copy(merged, values.begin());
  return falling;
}

// Number of pairs of equal neighbours in a sorted range of `count`.
template <typename Equal>
double tied_pairs(size_t count, const Equal& equal) {
  double tied = 0;
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && equal(begin, end)) ++end;
    tied += pairs_of(end - begin);
  }
  return tied;
}

}  // namespace

// Knight's algorithm: pairs in opposite order are the inversions of b, sorted by a.
std::optional<double> kendall_tau(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size())
    fail("[kendall_tau] {} and {} values; both rankings must be of the same things", a.size(),
         b.size());
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (std::ranges::any_of(a, is_nan) || std::ranges::any_of(b, is_nan)) return {};
  std::vector<size_t> order(a.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(a[i], b[i]); });
  const auto same_a = [&](size_t i, size_t j) { return a[order[i]] == a[order[j]]; };
  const double tied_a = tied_pairs(a.size(), same_a);
  const double tied_both = tied_pairs(
      a.size(), [&](size_t i, size_t j) { return same_a(i, j) && b[order[i]] == b[order[j]]; });
  std::vector<double> sorted(a.size()), room(a.size());
  std::ranges::transform(order, sorted.begin(), [&](size_t i) { return b[i]; });
  const double opposite = sort_and_count(sorted, room);
  const double tied_b =
      tied_pairs(a.size(), [&](size_t i, size_t j) { return sorted[i] == sorted[j]; });
  const double all = pairs_of(a.size()), pairs_a = all - tied_a, pairs_b = all - tied_b;
  if (pairs_a == 0 || pairs_b == 0) return {};
  return (all - tied_a - tied_b + tied_both - 2 * opposite) / std::sqrt(pairs_a * pairs_b);
}

}  // namespace attend
