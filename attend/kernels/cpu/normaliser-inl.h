#if defined(ATTEND_KERNELS_NORMALISER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_NORMALISER_INL_H_
#undef ATTEND_KERNELS_NORMALISER_INL_H_
#else
#define ATTEND_KERNELS_NORMALISER_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Normalisers with a known shift per row: weights from scores and, in backward, score gradients
// from weight gradients. A rule takes vectors of scores less the row's reference, and the row's
// offset; see RowShifts.

// p = 4^(s - lse), ds = p (dp - delta)
template <class T>
struct SoftmaxRule {
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> offset) { return Exp4<T>(hn::Sub(s, offset)); }
  static HWY_INLINE Vec<T> slope(Vec<T>, Vec<T> p, Vec<T>) { return p; }
};

// p = 1 / (1 + 4^-s), ds = p (1 - p) dp
template <class T>
struct SigmoidRule {
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T>) {
    constexpr T kLowest = Exp2Traits<T>::kLowest / 2;
    const auto power = Exp4<T>(hn::Neg(Clamp<T>(s, -kLowest)));
    const auto p = hn::Div(Set<T>(1), hn::Add(Set<T>(1), power));
    return hn::IfThenZeroElse(hn::Lt(s, Set<T>(kLowest)), p);
  }
  static HWY_INLINE Vec<T> slope(Vec<T>, Vec<T> p, Vec<T>) { return hn::NegMulAdd(p, p, p); }
};

// p = s, ds = dp
template <class T>
struct PlainRule {
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T>) {
    return hn::IfThenZeroElse(hn::Eq(s, Set<T>(-std::numeric_limits<T>::infinity())), s);
  }
  static HWY_INLINE Vec<T> slope(Vec<T> s, Vec<T>, Vec<T>) {
    return hn::IfThenZeroElse(hn::Eq(s, Set<T>(-std::numeric_limits<T>::infinity())), Set<T>(1));
  }
};

// p = max(0, s - t), ds = dp - delta in the support
template <class T>
struct SparsemaxRule {
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> offset) {
    const auto x = hn::Sub(s, offset);
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(Tag<T>())), x);
  }
  static HWY_INLINE Vec<T> slope(Vec<T>, Vec<T> p, Vec<T>) {
    return hn::IfThenElse(hn::Gt(p, hn::Zero(Tag<T>())), Set<T>(1), p);  // 0, or NaN
  }
};

// p = max(0, (s - t) / 2)^2, ds = sqrt(p) (dp - delta)
template <class T>
struct EntmaxRule {
  static HWY_INLINE Vec<T> root(Vec<T> s, Vec<T> offset) {
    return SparsemaxRule<T>::weight(hn::Mul(s, Set<T>(0.5)), hn::Mul(offset, Set<T>(0.5)));
  }
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> offset) {
    const auto x = root(s, offset);
    return hn::Mul(x, x);
  }
  static HWY_INLINE Vec<T> slope(Vec<T> s, Vec<T>, Vec<T> offset) { return root(s, offset); }
};

// Calls body with the rule of the normaliser.
template <class T, class Body>
HWY_INLINE void WithRule(Normaliser normaliser, const Body& body) {
  switch (normaliser) {
    case Normaliser::softmax:
      return body(SoftmaxRule<T>());
    case Normaliser::sigmoid:
      return body(SigmoidRule<T>());
    case Normaliser::none:
      return body(PlainRule<T>());
    case Normaliser::sparsemax:
      return body(SparsemaxRule<T>());
    case Normaliser::entmax15:
      return body(EntmaxRule<T>());
  }
}

// Loads the shifts of `rows` rows, from row `index` on, to lanes. Lanes after the last row are
// treated as rows without keys.
template <class T>
void LoadShifts(const RowShifts<T>& from, int64_t index, int64_t rows, int64_t width,
                const RowShifts<T>& to) {
  std::fill_n(to.reference, width, T(0));
  std::fill_n(to.offset, width, std::numeric_limits<T>::infinity());
  if (from.reference == nullptr) return;  // the normaliser needs none
  std::copy_n(from.reference + index, rows, to.reference);
  std::copy_n(from.offset + index, rows, to.offset);
}

// Turns scores [keys][width] into weights, in place.
template <class T>
void WeighTile(Normaliser normaliser, const RowShifts<T>& shifts, int64_t keys, int64_t width,
               T* tile) {
  const Tag<T> d;
  WithRule<T>(normaliser, [&](auto rule) HWY_ATTR {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto reference = hn::Load(d, shifts.reference + lane);
      const auto offset = hn::Load(d, shifts.offset + lane);
      for (int64_t j = 0; j < keys; ++j) {
        T* cell = tile + j * width + lane;
        hn::Store(rule.weight(hn::Sub(hn::Load(d, cell), reference), offset), d, cell);
      }
    }
  });
}

// Turns scores into weights and weight gradients into score gradients, both in place.
template <class T>
void DifferentiateTile(Normaliser normaliser, const RowShifts<T>& shifts, const T* delta,
                       int64_t keys, int64_t width, T* scores, T* gradients) {
  const Tag<T> d;
  WithRule<T>(normaliser, [&](auto rule) HWY_ATTR {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto reference = hn::Load(d, shifts.reference + lane);
      const auto offset = hn::Load(d, shifts.offset + lane), less = hn::Load(d, delta + lane);
      for (int64_t j = 0; j < keys; ++j) {
        const auto s = hn::Sub(hn::Load(d, scores + j * width + lane), reference);
        T* gradient = gradients + j * width + lane;
        const auto p = rule.weight(s, offset);
        const auto slope = rule.slope(s, p, offset);
        hn::Store(p, d, scores + j * width + lane);
        hn::Store(hn::Mul(slope, hn::Sub(hn::Load(d, gradient), less)), d, gradient);
      }
    }
  });
}

// With g = dp/ds at a fixed threshold: moment_i += sum_j g_ij dp_ij, mass_i += sum_j g_ij, for
// scores and gradients dp [keys][width].
template <class T>
void AddSlopes(Normaliser normaliser, const RowShifts<T>& shifts, int64_t keys, int64_t width,
               const T* scores, const T* gradients, T* moment, T* mass) {
  const Tag<T> d;
  WithRule<T>(normaliser, [&](auto rule) HWY_ATTR {
    for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
      const int64_t lane = i % width;
      const auto offset = hn::Load(d, shifts.offset + lane);
      const auto score = hn::Sub(hn::Load(d, scores + i), hn::Load(d, shifts.reference + lane));
      const auto slope = rule.slope(score, rule.weight(score, offset), offset);
      const auto product =
          hn::MulAdd(slope, hn::Load(d, gradients + i), hn::Load(d, moment + lane));
      hn::Store(product, d, moment + lane);
      hn::Store(hn::Add(hn::Load(d, mass + lane), slope), d, mass + lane);
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
