#if defined(ATTEND_KERNELS_GATE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_GATE_SUMS_INL_H_
#undef ATTEND_KERNELS_GATE_SUMS_INL_H_
#else
#define ATTEND_KERNELS_GATE_SUMS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The bias -|a_i - b_j| of Bias::query_sums a and Bias::key_sums b on tiles [keys][width] of one
// block of rows. Sums are relative to the first row of the block, and each is the sum of two
// numbers of type T. So the error of a difference is a rounding of the difference, not of the sums.
template <class T>
class GateSums {
 public:
  GateSums(const Problem<T>& problem, int64_t width, Arena<T>& arena)
      : problem_(problem), high_(arena.take(width)), low_(arena.take(width)) {}

  // Adds the bias to scores, times `unit`.
  void add(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width, T unit,
           T* tile) {
    const Tag<T> d;
    const double base = load(first, rows, width);
    const double* sums = key_sums(first, key);
    for (int64_t j = 0; j < keys; ++j) {
      const Parts own = parts(base - sums[j]);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        T* cell = tile + j * width + lane;
        hn::Store(hn::NegMulAdd(hn::Abs(difference(own, lane)), Set<T>(unit), hn::Load(d, cell)), d,
                  cell);
      }
    }
  }

  // tile[j][i] = ds_ij. The difference a_i - b_j is negative if the key precedes the query; 0
  // counts as negative. by_query: [batch, heads, queries], by_key: [batch, heads, keys], or null.
  void differentiate(double* by_query, double* by_key, const Row& first, int64_t rows, int64_t key,
                     int64_t keys, int64_t width, const T* tile) {
    const Tag<T> d;
    const double base = load(first, rows, width);
    const double* sums = key_sums(first, key);
    T* const row_sums = low_;  // overwritten lane by lane, after the last use
    for (int64_t j = 0; j < keys && by_key != nullptr; ++j) {
      auto sum = hn::Zero(d);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>)
        sum = hn::Add(sum, signed_slope(parts(base - sums[j]), lane, tile + j * width + lane));
      by_key[key_index(first, key + j)] -= double{hn::GetLane(hn::SumOfLanes(d, sum))};
    }
    if (by_query == nullptr) return;
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      auto sum = hn::Zero(d);
      for (int64_t j = 0; j < keys; ++j)
        sum = hn::Add(sum, signed_slope(parts(base - sums[j]), lane, tile + j * width + lane));
      hn::Store(sum, d, row_sums + lane);
    }
    for (int64_t r = 0; r < rows; ++r) by_query[query_index(first) + r] += double{row_sums[r]};
  }

 private:
  struct Parts {
    T high, low;
  };

  // Infinite sums would become NaN as differences.
  static Parts parts(double x) {
    constexpr double limit = double{std::numeric_limits<T>::max()} / 8;
    const auto high = static_cast<T>(std::clamp(x, -limit, limit));
    return {high, static_cast<T>(std::clamp(x - double{high}, -limit, limit))};
  }

  int64_t query_index(const Row& row) const {
    return (row.batch * problem_.shape.heads + row.head) * problem_.shape.queries + row.query;
  }
  int64_t key_index(const Row& row, int64_t key) const {
    return (row.batch * problem_.shape.heads + row.head) * problem_.shape.keys + key;
  }
  const double* key_sums(const Row& first, int64_t key) const {
    return problem_.bias.key_sums + key_index(first, key);
  }

  // Loads the sums of the rows, less the first sum, which it returns; 0 for lanes after the last
  // row.
  double load(const Row& first, int64_t rows, int64_t width) {
    const double* sums = problem_.bias.query_sums + query_index(first);
    for (int64_t r = 0; r < width; ++r) {
      const Parts own = parts(r < rows ? sums[r] - sums[0] : 0.0);
      high_[r] = own.high;
      low_[r] = own.low;
    }
    return sums[0];
  }

  // a_i - b_j for the lanes of a key
  HWY_INLINE Vec<T> difference(const Parts& key, int64_t lane) const {
    const Tag<T> d;
    return hn::Add(hn::Add(hn::Load(d, high_ + lane), Set<T>(key.high)),
                   hn::Add(hn::Load(d, low_ + lane), Set<T>(key.low)));
  }

  // ds times the sign of the slope of the bias by a_i
  HWY_INLINE Vec<T> signed_slope(const Parts& key, int64_t lane, const T* cell) const {
    const Tag<T> d;
    const auto ds = hn::Load(d, cell);
    return hn::IfThenElse(hn::Gt(difference(key, lane), hn::Zero(d)), hn::Neg(ds), ds);
  }

  const Problem<T>& problem_;
  T* high_;  // [width]
  T* low_;   // [width]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
