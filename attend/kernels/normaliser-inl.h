#if defined(ATTEND_KERNELS_NORMALISER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_NORMALISER_INL_H_
#undef ATTEND_KERNELS_NORMALISER_INL_H_
#else
#define ATTEND_KERNELS_NORMALISER_INL_H_
#endif

#include "attend/kernels/plan-inl.h"
#include "attend/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The normalisers where a row's normaliser is known: weights from scores and, in backward, score
// gradients from weight gradients. A rule takes vectors; `shift` is what ShiftOf made of the lse.

// p = 2^(s - lse), ds = p (dp - delta)
template <class T>
struct SoftmaxRule {
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> shift) { return Exp2<T>(hn::Sub(s, shift)); }
  static HWY_INLINE Vec<T> slope(Vec<T>, Vec<T> p, Vec<T>) { return p; }
};

// p = 1 / (1 + 2^-s), ds = p (1 - p) dp
template <class T>
struct SigmoidRule {
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T>) {
    const auto power = Exp2<T>(hn::Neg(Clamp<T>(s, -Exp2Traits<T>::kLowest)));
    const auto p = hn::Div(Set<T>(1), hn::Add(Set<T>(1), power));
    return hn::IfThenZeroElse(hn::Eq(s, Set<T>(-std::numeric_limits<T>::infinity())), p);
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
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> shift) {
    const auto x = hn::Sub(s, shift);
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(Tag<T>())), x);
  }
  static HWY_INLINE Vec<T> slope(Vec<T>, Vec<T> p, Vec<T>) {
    return hn::IfThenElseZero(hn::Gt(p, hn::Zero(Tag<T>())), Set<T>(1));
  }
};

// p = max(0, (s - t) / 2)^2, ds = sqrt(p) (dp - delta)
template <class T>
struct EntmaxRule {
  static HWY_INLINE Vec<T> root(Vec<T> s, Vec<T> shift) {
    return SparsemaxRule<T>::weight(hn::Mul(s, Set<T>(0.5)), hn::Mul(shift, Set<T>(0.5)));
  }
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> shift) {
    const auto x = root(s, shift);
    return hn::Mul(x, x);
  }
  static HWY_INLINE Vec<T> slope(Vec<T> s, Vec<T>, Vec<T> shift) { return root(s, shift); }
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

// The lse of rows in lanes, in the unit of the normaliser. A row without keys and the lanes past
// the last row get +inf: all scores are below, so that weights are 0.
template <class T>
void LoadShift(Normaliser normaliser, const T* lse, int64_t rows, int64_t width, T* shift) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (int64_t r = 0; r < width; ++r) {
    const bool empty = r >= rows || lse[r] == -kInfinity;
    shift[r] = empty ? kInfinity : lse[r] * T(score_unit(normaliser));
  }
}

// Scores [keys][width] to weights, in place.
template <class T>
void WeighTile(Normaliser normaliser, const T* shift, int64_t keys, int64_t width, T* tile) {
  const Tag<T> d;
  WithRule<T>(normaliser, [&](auto rule) HWY_ATTR {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto by = hn::Load(d, shift + lane);
      for (int64_t j = 0; j < keys; ++j) {
        T* at = tile + j * width + lane;
        hn::Store(rule.weight(hn::Load(d, at), by), d, at);
      }
    }
  });
}

// Scores become weights and weight gradients score gradients, both in place.
template <class T>
void DifferentiateTile(Normaliser normaliser, const T* shift, const T* delta, int64_t keys,
                       int64_t width, T* scores, T* gradients) {
  const Tag<T> d;
  WithRule<T>(normaliser, [&](auto rule) HWY_ATTR {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto by = hn::Load(d, shift + lane), less = hn::Load(d, delta + lane);
      for (int64_t j = 0; j < keys; ++j) {
        const auto s = hn::Load(d, scores + j * width + lane);
        T* gradient = gradients + j * width + lane;
        const auto p = rule.weight(s, by);
        hn::Store(p, d, scores + j * width + lane);
        hn::Store(hn::Mul(rule.slope(s, p, by), hn::Sub(hn::Load(d, gradient), less)), d, gradient);
      }
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
