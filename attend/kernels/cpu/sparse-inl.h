#if defined(ATTEND_KERNELS_SPARSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_SPARSE_INL_H_
#undef ATTEND_KERNELS_SPARSE_INL_H_
#else
#define ATTEND_KERNELS_SPARSE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

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

// The largest scores of rows in lanes: 0 for a row without keys.
template <class T>
struct RowTops {
  Vec<T> top, poison;  // poison: 0, or NaN for a row with NaN among its scores
  hn::Mask<Tag<T>> empty;

  RowTops(const T* scores, int64_t keys, int64_t width) {
    const Tag<T> d;
    const auto lowest = Set<T>(-std::numeric_limits<T>::infinity());
    top = lowest;
    poison = hn::Zero(d);
    for (int64_t j = 0; j < keys; ++j) {
      const auto s = hn::Load(d, scores + j * width);
      top = MaxOrSecond<T>(s, top);
      poison = hn::IfThenElse(hn::IsNaN(s), s, poison);
    }
    empty = hn::Eq(top, lowest);
    top = hn::IfThenZeroElse(empty, top);
  }

  void store(Vec<T> t, const RowShifts<T>& shifts, int64_t lane) const {
    const Tag<T> d;
    t = hn::IfThenElse(empty, Set<T>(std::numeric_limits<T>::infinity()), t);
    hn::Store(top, d, shifts.reference + lane);
    hn::Store(hn::Add(t, poison), d, shifts.offset + lane);
  }
};

// Near the root, each Newton step at least doubles the number of correct digits; before, it at
// least halves the support.
inline constexpr int kMostSteps = 100;

// The offset of AlphaRule: Newton steps for the sum of the weights, from the largest score, at
// which one weight is 1, towards the bound at which all are equal. Up to alpha 2 they come from the
// left and stop at the root. Above, the sum is not convex; a step that leaves the bracket is
// replaced by its middle, and so is every fourth step.
template <class T>
Vec<T> AlphaOffset(T alpha, const T* scores, int64_t keys, int64_t width, Vec<T> top) {
  const Tag<T> d;
  const AlphaRule<T> rule(alpha);
  const T rate = rule.rate(), most = std::expm1(-rate * std::log(T(std::max<int64_t>(keys, 1))));
  auto low = hn::Zero(d), high = Set<T>(-most / rate), t = low;
  auto open = hn::Eq(low, low);
  for (int step = 0; step < kMostSteps; ++step) {
    auto sum = hn::Zero(d), slope = hn::Zero(d);
    for (int64_t j = 0; j < keys; ++j)
      rule.add(hn::Sub(hn::Load(d, scores + j * width), top), t, sum, slope);
    const auto above = hn::Ge(sum, Set<T>(1));
    low = hn::IfThenElse(above, t, low);
    high = hn::IfThenElse(above, high, t);
    const auto middle = hn::MulAdd(hn::Sub(high, low), Set<T>(0.5), low);
    const auto newton = hn::Add(t, hn::Div(hn::Sub(sum, Set<T>(1)), hn::Max(slope, Set<T>(0.5))));
    const bool halve = alpha > 2 && step % 4 == 3;
    const auto inside = hn::And(hn::Gt(newton, low), hn::Lt(newton, high));
    auto next = halve ? middle : hn::IfThenElse(inside, newton, middle);
    next = hn::IfThenElse(hn::Eq(newton, t), t, next);  // the step is below the rounding of t
    open = hn::And(open, hn::Not(hn::Eq(next, t)));
    if (hn::AllFalse(d, open)) break;
    t = hn::IfThenElse(open, next, t);
  }
  return t;
}

// Scores further below the largest have weight 0 in top_k.
template <class T>
inline constexpr T kTopReach = sizeof(T) == 4 ? T(30) : T(60);

// The shift of one row of top_k: the least score that is kept, and ln sum e^(s - reference).
template <class T>
RowShifts<T> StoreTopShift(int64_t count, std::vector<T>& scores, T poison,
                           const RowShifts<T>& to) {
  *to.reference = 0;
  *to.offset = std::numeric_limits<T>::infinity() + poison;
  if (scores.empty()) return to;
  const int64_t kept = std::min<int64_t>(count, static_cast<int64_t>(scores.size()));
  const auto last = scores.begin() + kept - 1;
  std::nth_element(scores.begin(), last, scores.end(), std::greater<>());
  const T top = *std::max_element(scores.begin(), last + 1);
  *to.reference = std::max(*last, top - kTopReach<T>);
  T sum = poison;
  for (const T s : scores) sum += s < *to.reference ? T(0) : std::exp(s - *to.reference);
  *to.offset = std::log(sum);
  return to;
}

template <class T>
void FindTopShifts(int64_t count, const T* scores, int64_t keys, int64_t width,
                   const RowShifts<T>& shifts) {
  std::vector<T> row;
  row.reserve(static_cast<size_t>(keys));
  for (int64_t r = 0; r < width; ++r) {
    row.clear();
    T poison = 0;
    for (int64_t j = 0; j < keys; ++j) {
      const T s = scores[j * width + r];
      if (std::isnan(s))
        poison = s;
      else if (s != -std::numeric_limits<T>::infinity())
        row.push_back(s);
    }
    StoreTopShift(count, row, poison, {shifts.reference + r, shifts.offset + r});
  }
}

// Stores shifts; the reference is the largest score, or, for top_k, the least score that is kept.
// The offset is NaN for a row with NaN among its scores.
template <class T>
void FindThresholds(const RowNormaliser<T>& normaliser, const T* scores, int64_t keys,
                    int64_t width, const RowShifts<T>& shifts) {
  const Tag<T> d;
  if (normaliser.kind == Normaliser::top_k)
    return FindTopShifts(normaliser.top, scores, keys, width, shifts);
  // t for a single weight of 1: a lower bound.
  const T reach = normaliser.kind == Normaliser::sparsemax ? T(1) : T(2);
  for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
    const RowTops<T> tops(scores + lane, keys, width);
    auto t = Set<T>(-reach);
    if (normaliser.kind == Normaliser::entmax) {
      t = AlphaOffset(normaliser.alpha, scores + lane, keys, width, tops.top);
      tops.store(t, shifts, lane);
      continue;
    }
    for (int step = 0; step < kMostSteps; ++step) {
      const auto next = SparseStep<T>(normaliser.kind, scores + lane, keys, width, tops.top, t);
      const bool done = hn::AllFalse(d, hn::Gt(next, t));
      t = MaxOrSecond<T>(next, t);
      if (done) break;
    }
    tops.store(t, shifts, lane);
  }
}

// Sums of p a, p r, g p, g p a and g p r over the keys of each row, for the gradient by alpha.
// a = -(alpha - 1) ln p, so that dp/ds at a fixed threshold is p e^a; r = e^a - 1 - a; g = dp.
template <class T>
struct AlphaSums {
  T *pa, *pr, *gp, *gpa, *gpr;  // [width]

  AlphaSums(int64_t width, Arena<T>& arena)
      : pa(arena.take(width)),
        pr(arena.take(width)),
        gp(arena.take(width)),
        gpa(arena.take(width)),
        gpr(arena.take(width)) {
    clear(width);
  }

  const AlphaSums& clear(int64_t width) const {
    for (T* sum : {pa, pr, gp, gpa, gpr}) std::fill_n(sum, width, T(0));
    return *this;
  }

  // d/dalpha of sum_j p_j g_j + by_lse t for the weights p and the threshold t of a row. Correia et
  // al. 2019, proposition 1: dp_j = (p_j - q_j) / (alpha - 1)^2 - (p_j ln p_j + q_j H) / (alpha -
  // 1), q = slope / sum of slopes. The sums avoid its cancellation near alpha 1.
  T gradient(int64_t r, T rate, T by_lse) const {
    const T divisor = rate * rate * (1 + pa[r] + pr[r]);
    return (pr[r] * (gp[r] + gpa[r]) - gpr[r] * (1 + pa[r]) + by_lse * (1 + pa[r])) / divisor;
  }
};

// e^a - 1 - a for a from 0 to 1/2, over a^2.
template <class T>
HWY_INLINE Vec<T> CurveOfExp(Vec<T> a) {
  static constexpr T kTerms[] = {T(1) / 2,        T(1) / 6,         T(1) / 24,
                                 T(1) / 120,      T(1) / 720,       T(1) / 5040,
                                 T(1) / 40320,    T(1) / 362880,    T(1) / 3628800,
                                 T(1) / 39916800, T(1) / 479001600, T(1) / 6227020800};
  return Polynomial<T>(a, kTerms);
}

template <class T>
void AddAlphaSums(T alpha, const RowShifts<T>& shifts, int64_t keys, int64_t width, const T* scores,
                  const T* gradients, const AlphaSums<T>& to) {
  const Tag<T> d;
  const AlphaRule<T> rule(alpha);
  const auto add = [&](T* sum, Vec<T> a, Vec<T> b)
                       HWY_ATTR { hn::Store(hn::MulAdd(a, b, hn::Load(d, sum)), d, sum); };
  for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
    const int64_t lane = i % width;
    const auto offset = hn::Load(d, shifts.offset + lane), g = hn::Load(d, gradients + i);
    const auto s = hn::Sub(hn::Load(d, scores + i), hn::Load(d, shifts.reference + lane));
    const auto p = rule.weight(s, offset), slope = rule.slope(s, p, offset);
    const auto none = hn::Eq(p, hn::Zero(d));
    const auto log = hn::Log(d, hn::IfThenElse(none, Set<T>(1), p));
    const auto a = hn::Mul(log, Set<T>(-rule.rate())), pa = hn::Mul(p, a);
    const auto near = hn::Mul(hn::Mul(pa, a), CurveOfExp<T>(hn::Min(a, Set<T>(0.5))));
    const auto pr = hn::IfThenElse(hn::Lt(a, Set<T>(0.5)), near, hn::Sub(hn::Sub(slope, p), pa));
    add(to.pa + lane, pa, Set<T>(1));
    add(to.pr + lane, pr, Set<T>(1));
    add(to.gp + lane, p, g);
    add(to.gpa + lane, pa, g);
    add(to.gpr + lane, pr, g);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
