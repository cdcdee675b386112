#if defined(ATTEND_KERNELS_NORMALISER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_NORMALISER_INL_H_
#undef ATTEND_KERNELS_NORMALISER_INL_H_
#else
#define ATTEND_KERNELS_NORMALISER_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/simd-inl.h"
#include "attend/kernels/cpu/stick-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Normalisers with a known shift per row: weights from scores and, in backward, score gradients
// from weight gradients. A rule takes vectors of scores less the row's reference, and the row's
// offset; see RowShifts. slope is dp/ds at a fixed offset.

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

// p = x^(1 / (a - 1)), x = max(0, 1 + (a - 1)(s - c)), ds = p^(2 - a) (dp - delta). The offset c is
// 1 / (a - 1) above the threshold: 1 + .. keeps its digits as a goes to 1, and p goes to e^(s - c).
template <class T>
class AlphaRule {
 public:
  explicit AlphaRule(T alpha) : rate_(alpha - 1), unit_(T(kLog4E) / rate_) {}

  HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> offset) const { return power(rise(s, offset)); }

  HWY_INLINE Vec<T> slope(Vec<T> s, Vec<T> p, Vec<T> offset) const {
    return over_base(p, rise(s, offset));
  }

  // Adds weights and slopes to two sums.
  HWY_INLINE void add(Vec<T> s, Vec<T> offset, Vec<T>& weights, Vec<T>& slopes) const {
    const auto x = rise(s, offset), p = power(x);
    weights = hn::Add(weights, p);
    slopes = hn::Add(slopes, over_base(p, x));
  }

  T rate() const { return rate_; }

 private:
  // x - 1; infinite scores stay infinite
  HWY_INLINE Vec<T> rise(Vec<T> s, Vec<T> offset) const {
    return hn::Mul(hn::Sub(s, offset), Set<T>(rate_));
  }

  HWY_INLINE Vec<T> power(Vec<T> rise) const {
    const Tag<T> d;
    const auto inside = hn::Gt(rise, Set<T>(-1));
    const auto log = hn::Log1p(d, hn::IfThenElseZero(inside, rise));
    const auto outside = hn::IfThenZeroElse(hn::Le(rise, Set<T>(-1)), rise);  // 0, or NaN
    return hn::IfThenElse(inside, Exp4<T>(hn::Mul(log, Set<T>(unit_))), outside);
  }

  static HWY_INLINE Vec<T> over_base(Vec<T> p, Vec<T> rise) {
    return hn::IfThenElse(hn::Gt(p, hn::Zero(Tag<T>())), hn::Div(p, hn::Add(rise, Set<T>(1))), p);
  }

  T rate_, unit_;
};

// p = e^(s - offset) from the reference on, which is the least score that is kept.
template <class T>
struct TopRule {
  static HWY_INLINE Vec<T> weight(Vec<T> s, Vec<T> offset) {
    const auto power = Exp4<T>(hn::Mul(hn::Sub(s, offset), Set<T>(T(kLog4E))));
    return hn::IfThenZeroElse(hn::Lt(s, hn::Zero(Tag<T>())), power);
  }
  static HWY_INLINE Vec<T> slope(Vec<T>, Vec<T> p, Vec<T>) { return p; }
};

// A rule on one row per lane.
template <class T, class Rule>
struct RuledRow {
  Rule rule;
  Vec<T> offset;

  HWY_INLINE Vec<T> weight(Vec<T> s) const { return rule.weight(s, offset); }
  // ds from the weights p, dp and delta; `score` still has its reference.
  HWY_INLINE Vec<T> gradient(Vec<T>, Vec<T> s, Vec<T> p, Vec<T> dp, Vec<T> delta) const {
    return hn::Mul(rule.slope(s, p, offset), hn::Sub(dp, delta));
  }
};

// p = max(0, 4^s - 1) / 4^offset, ds = 4^(s - offset) ([s > 0] dp - sign(s) delta), for scores that
// already lack the whole number `reference`. Powers of 4 with whole exponents are exact; p keeps
// its digits for scores near 0.
template <class T>
class SoftpickRow {
 public:
  SoftpickRow(Vec<T> reference, Vec<T> offset)
      : less_(WholePowerOf4<T>(hn::Neg(reference))), factor_(Exp4<T>(hn::Neg(offset))) {}

  HWY_INLINE Vec<T> weight(Vec<T> s) const {
    const auto raw = Exp4Less<T>(s, less_);
    return scaled(hn::IfThenZeroElse(hn::Lt(raw, hn::Zero(Tag<T>())), raw));
  }

  HWY_INLINE Vec<T> gradient(Vec<T> score, Vec<T> s, Vec<T>, Vec<T> dp, Vec<T> delta) const {
    const auto zero = hn::Zero(Tag<T>());
    const auto below = hn::IfThenElseZero(hn::Lt(score, zero), delta);
    const auto slope = hn::IfThenElse(hn::Gt(score, zero), hn::Sub(dp, delta), below);
    return hn::Mul(scaled(hn::IfThenElse(hn::IsNaN(s), s, Exp4<T>(s))), slope);
  }

 private:
  // Rows without keys have factor 0; powers of their scores may be infinite.
  HWY_INLINE Vec<T> scaled(Vec<T> x) const {
    return hn::IfThenZeroElse(hn::Eq(factor_, hn::Zero(Tag<T>())), hn::Mul(x, factor_));
  }

  Vec<T> less_, factor_;
};

template <class T>
struct SoftpickRule {};

template <class T, class Rule>
HWY_INLINE auto RowOf(const Rule& rule, Vec<T> reference, Vec<T> offset) {
  if constexpr (std::is_same_v<Rule, SoftpickRule<T>>) {
    return SoftpickRow<T>(reference, offset);
  } else {
    return RuledRow<T, Rule>{rule, offset};
  }
}

// Calls body with the rule of a sparse normaliser.
template <class T, class Body>
HWY_INLINE void WithSparseRule(const RowNormaliser<T>& normaliser, const Body& body) {
  switch (normaliser.kind) {
    case Normaliser::sparsemax:
      return body(SparsemaxRule<T>());
    case Normaliser::entmax15:
      return body(EntmaxRule<T>());
    case Normaliser::entmax:
      return body(AlphaRule<T>(normaliser.alpha));
    case Normaliser::top_k:
      return body(TopRule<T>());
    default:
      return;
  }
}

// Calls body with the rule of the normaliser.
template <class T, class Body>
HWY_INLINE void WithRule(const RowNormaliser<T>& normaliser, const Body& body) {
  switch (normaliser.kind) {
    case Normaliser::softmax:
      return body(SoftmaxRule<T>());
    case Normaliser::sigmoid:
      return body(SigmoidRule<T>());
    case Normaliser::none:
      return body(PlainRule<T>());
    case Normaliser::softpick:
      return body(SoftpickRule<T>());
    default:
      return WithSparseRule<T>(normaliser, body);
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

// Turns scores [keys][width] into weights, in place. If the order of the keys matters, a reference
// is -log4 of what the keys after the tile leave.
template <class T>
void WeighTile(const RowNormaliser<T>& normaliser, const RowShifts<T>& shifts, int64_t keys,
               int64_t width, T* tile) {
  const Tag<T> d;
  if (is_ordered(normaliser.kind)) {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>)
      BreakLanes<T>(keys, width, hn::Load(d, shifts.reference + lane), tile + lane);
    return;
  }
  WithRule<T>(normaliser, [&](auto rule) HWY_ATTR {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto reference = hn::Load(d, shifts.reference + lane);
      const auto row = RowOf<T>(rule, reference, hn::Load(d, shifts.offset + lane));
      for (int64_t j = 0; j < keys; ++j) {
        T* cell = tile + j * width + lane;
        hn::Store(row.weight(hn::Sub(hn::Load(d, cell), reference)), d, cell);
      }
    }
  });
}

// Turns scores into weights and weight gradients into score gradients, both in place.
template <class T>
void DifferentiateTile(const RowNormaliser<T>& normaliser, const RowShifts<T>& shifts,
                       const T* delta, int64_t keys, int64_t width, T* scores, T* gradients) {
  const Tag<T> d;
  WithRule<T>(normaliser, [&](auto rule) HWY_ATTR {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto reference = hn::Load(d, shifts.reference + lane);
      const auto row = RowOf<T>(rule, reference, hn::Load(d, shifts.offset + lane));
      const auto less = hn::Load(d, delta + lane);
      for (int64_t j = 0; j < keys; ++j) {
        const auto score = hn::Load(d, scores + j * width + lane), s = hn::Sub(score, reference);
        T* gradient = gradients + j * width + lane;
        const auto p = row.weight(s);
        hn::Store(p, d, scores + j * width + lane);
        hn::Store(row.gradient(score, s, p, hn::Load(d, gradient), less), d, gradient);
      }
    }
  });
}

// With g = dp/ds at a fixed threshold: moment_i += sum_j g_ij dp_ij, mass_i += sum_j g_ij, for
// scores and gradients dp [keys][width].
template <class T>
void AddSlopes(const RowNormaliser<T>& normaliser, const RowShifts<T>& shifts, int64_t keys,
               int64_t width, const T* scores, const T* gradients, T* moment, T* mass) {
  const Tag<T> d;
  WithSparseRule<T>(normaliser, [&](auto rule) HWY_ATTR {
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
