#if defined(ATTEND_KERNELS_SPARSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_SPARSE_INL_H_
#undef ATTEND_KERNELS_SPARSE_INL_H_
#else
#define ATTEND_KERNELS_SPARSE_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/normaliser-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Thresholds of sparsemax and entmax-1.5 for rows in lanes, scores [keys][width]. The sum of the
// weights decreases with the threshold t and is convex in it; Newton steps from the left of the
// root therefore never pass it. For sparsemax, piecewise linear, they end on it. Scores and t are
// taken relative to the row's largest score: t then has the magnitude and rounding of the weights.

// One step per lane; `scores` are their columns, `top` the largest score of each.
template <class T>
HWY_INLINE Vec<T> SparseStep(Normaliser normaliser, const T* scores, int64_t keys, int64_t width,
                             Vec<T> top, Vec<T> t) {
  const Tag<T> d;
  auto sum = hn::Zero(d), count = hn::Zero(d);
  if (normaliser == Normaliser::sparsemax) {
    // sum over the support of s - t, less 1, over the size of the support
    for (int64_t j = 0; j < keys; ++j) {
      const auto x = hn::Sub(hn::Sub(hn::Load(d, scores + j * width), top), t);
      const auto inside = hn::Gt(x, hn::Zero(d));
      sum = hn::Add(sum, hn::IfThenElseZero(inside, x));
      count = hn::Add(count, hn::IfThenElseZero(inside, Set<T>(1)));
    }
    return hn::Add(t, hn::Div(hn::Sub(sum, Set<T>(1)), hn::Max(count, Set<T>(1))));
  }
  // x = (s - t) / 2: sum of x^2, less 1, over the sum of x
  for (int64_t j = 0; j < keys; ++j) {
    const auto s = hn::Sub(hn::Load(d, scores + j * width), top);
    const auto x = hn::Max(hn::Mul(hn::Sub(s, t), Set<T>(0.5)), hn::Zero(d));
    sum = hn::MulAdd(x, x, sum);
    count = hn::Add(count, x);
  }
  return hn::Add(t, hn::Div(hn::Sub(sum, Set<T>(1)), hn::Max(count, Set<T>(0.5))));
}

// Stores shifts; the reference is the largest score. The offset is NaN for a row with NaN among its
// scores.
template <class T>
void FindThresholds(Normaliser normaliser, const T* scores, int64_t keys, int64_t width,
                    const RowShifts<T>& shifts) {
  const Tag<T> d;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  // t for a single weight of 1: a lower bound.
  const T reach = normaliser == Normaliser::sparsemax ? T(1) : T(2);
  // Near the root, each step at least doubles the number of correct digits; before, it at least
  // halves the support.
  constexpr int kMostSteps = 100;
  for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
    auto top = Set<T>(-kInfinity), poison = hn::Zero(d);
    for (int64_t j = 0; j < keys; ++j) {
      const auto s = hn::Load(d, scores + j * width + lane);
      top = MaxOrSecond<T>(s, top);
      poison = hn::IfThenElse(hn::IsNaN(s), s, poison);
    }
    const auto empty = hn::Eq(top, Set<T>(-kInfinity));
    top = hn::IfThenZeroElse(empty, top);
    auto t = Set<T>(-reach);
    for (int step = 0; step < kMostSteps; ++step) {
      const auto next = SparseStep<T>(normaliser, scores + lane, keys, width, top, t);
      const bool done = hn::AllFalse(d, hn::Gt(next, t));
      t = MaxOrSecond<T>(next, t);
      if (done) break;
    }
    t = hn::IfThenElse(empty, Set<T>(kInfinity), t);
    hn::Store(top, d, shifts.reference + lane);
    hn::Store(hn::Add(t, poison), d, shifts.offset + lane);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
