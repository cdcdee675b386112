#if defined(ATTEND_KERNELS_ADDITIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ADDITIVE_INL_H_
#undef ATTEND_KERNELS_ADDITIVE_INL_H_
#else
#define ATTEND_KERNELS_ADDITIVE_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/additive-prepare-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The additive family, s_ij = scale sum_a v_a tanh(q_ia + k_ja), computed without tanh. The
// logistic function has the same form with another factor and half the rate. With A = e^(2(q - c))
// and E = e^(-2(k + c)), computed once per row, tanh(q + k) = 1 - 2 / (1 + A / E) = 1 - 2 E / (A +
// E).
//
// A score is therefore a constant of the row plus sum_a w_a / (A_a + E_a), w_a = -2 scale v_a E_a.
// The sums A + E cost an addition, and up to four fractions share one reciprocal: w0/d0 + w1/d1 =
// (w0 d1 + w1 d0) / (d0 d1).
//
// The absolute error is a few units in the last place of 1. If both sides are around 0, the scores
// are small, too; tanh is then a polynomial with a relative error of a few units.

// A sum of fractions as n / d.
template <class T>
struct Fraction {
  Vec<T> n, d;
};

template <class T>
HWY_INLINE Fraction<T> AddFractions(const Fraction<T>& x, const Fraction<T>& y) {
  return {hn::MulAdd(x.n, y.d, hn::Mul(y.n, x.d)), hn::Mul(x.d, y.d)};
}

// sum + x.n / x.d
template <class T>
HWY_INLINE Vec<T> Accumulate(Vec<T> sum, const Fraction<T>& x) {
  if constexpr (std::is_same_v<T, float> && HWY_TARGET != HWY_NEON) {
    // One Newton step, folded into the sum: n r + n r (1 - d r).
    const auto guess = hn::ApproximateReciprocal(x.d);
    const auto first = hn::Mul(x.n, guess);
    const auto error = hn::NegMulAdd(x.d, guess, Set<T>(1));
    return hn::MulAdd(first, error, hn::Add(sum, first));
  } else {
    return hn::MulAdd(x.n, Reciprocal<T>(x.d), sum);
  }
}

template <class T>
class AdditiveScores : public TileScores<T> {
 public:
  AdditiveScores(const Problem<T>& problem, const AdditivePlan<T>& plan)
      : problem_(problem), plan_(plan) {}

  // The factors A in the order of the plan, [width / lanes][depth][lanes], and equal scratch space.
  // The data of a step is contiguous: rows a power of two apart would share few cache sets.
  int64_t panel_size(int64_t width) const override { return 2 * problem_.shape.depth * width; }

  void load_queries(const Row& first, int64_t rows, int64_t width, T* panel) const override {
    const int64_t depth = problem_.shape.depth, head = head_of(first);
    const Tag<T> d;
    T* plain = panel + depth * width;
    const T rate = T(activation_rate(problem_.score.activation));
    LoadPanel(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
              rows, depth, plain, width);
    for (int64_t p = 0; p < depth; ++p) {
      const int64_t a = plan_.order[head * plan_.padded + p];
      const bool whole = plan_.plain[head * plan_.padded + a] != 0;
      const auto centre = Set<T>(plan_.centre[head * plan_.padded + a]);
      // Lanes without a query must also stay within the limits: overflow would reach the gradients
      // of the keys.
      std::fill_n(plain + a * width + rows, width - rows,
                  plan_.centre[head * plan_.padded + a] / rate);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        const auto q = hn::Mul(hn::Load(d, plain + a * width + lane), Set<T>(rate));
        const auto x = Clamp<T>(hn::Sub(q, centre), AdditiveLimits<T>::kClamp);
        hn::Store(whole ? q : ExpOfTwice<T>(x, hn::Zero(d)), d,
                  panel + lane * depth + p * kLanes<T>);
      }
    }
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const override {
    const int64_t head = head_of(first), depth = problem_.shape.depth;
    const int64_t offset = (head * problem_.shape.keys + first_key) * plan_.padded;
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      int64_t j = 0;
      for (; j + kStep <= keys; j += kStep) {
        step<kStep>(head, panel + lane * depth, offset + j * plan_.padded, width,
                    tile + j * width + lane);
      }
      for (; j < keys; ++j) {
        step<1>(head, panel + lane * depth, offset + j * plan_.padded, width,
                tile + j * width + lane);
      }
    }
  }

 private:
  static constexpr int kStep = 4;

  int64_t head_of(const Row& row) const { return row.batch * problem_.shape.heads + row.head; }

  // Fraction of one dimension: weight / (a + factor).
  static HWY_INLINE Fraction<T> leaf(Vec<T> a, T factor, T weight) {
    return {Set<T>(weight), hn::Add(a, Set<T>(factor))};
  }

  // Scores of kKeys keys for one vector of queries: enough independent chains to hide latencies.
  // The numbers of a key are read once each and can be memory operands.
  template <int kKeys>
  HWY_NOINLINE void step(int64_t head, const T* HWY_RESTRICT panel, int64_t first, int64_t width,
                         T* HWY_RESTRICT to) const {
    const Tag<T> d;
    const int64_t* ends = plan_.ends + head * 4;
    const T* HWY_RESTRICT factor = plan_.factor + first;
    const T* HWY_RESTRICT weight = plan_.weight + first;
    const int64_t padded = plan_.padded;
    Vec<T> sum[kKeys];
    for (auto& s : sum) s = Set<T>(plan_.constant[head]);
    const auto each = [&](int64_t p, const auto& body) HWY_ATTR {
#pragma GCC unroll 4
      for (int j = 0; j < kKeys; ++j) {
        sum[j] = body(sum[j], factor + j * padded + p, weight + j * padded + p);
      }
    };
    for (int64_t p = 0; p < ends[0]; p += 4) {
      const T* part = panel + p * kLanes<T>;
      const auto a = hn::Load(d, part), b = hn::Load(d, part + kLanes<T>);
      const auto c = hn::Load(d, part + 2 * kLanes<T>), f = hn::Load(d, part + 3 * kLanes<T>);
      each(p, [&](Vec<T> s, const T* e, const T* w) HWY_ATTR {
        return Accumulate<T>(
            s, AddFractions<T>(AddFractions<T>(leaf(a, e[0], w[0]), leaf(b, e[1], w[1])),
                               AddFractions<T>(leaf(c, e[2], w[2]), leaf(f, e[3], w[3]))));
      });
    }
    for (int64_t p = ends[0]; p < ends[1]; p += 2) {
      const auto a = hn::Load(d, panel + p * kLanes<T>);
      const auto b = hn::Load(d, panel + (p + 1) * kLanes<T>);
      each(p, [&](Vec<T> s, const T* e, const T* w) HWY_ATTR {
        return Accumulate<T>(s, AddFractions<T>(leaf(a, e[0], w[0]), leaf(b, e[1], w[1])));
      });
    }
    for (int64_t p = ends[1]; p < ends[2]; ++p) {
      const auto a = hn::Load(d, panel + p * kLanes<T>);
      each(p, [&](Vec<T> s, const T* e, const T* w)
                  HWY_ATTR { return Accumulate<T>(s, leaf(a, e[0], w[0])); });
    }
    for (int64_t p = ends[2]; p < ends[3]; ++p) {
      const auto q = hn::Load(d, panel + p * kLanes<T>);
      each(p, [&](Vec<T> s, const T* k, const T* w) HWY_ATTR {
        const auto x = hn::Add(q, Set<T>(k[0]));
        return hn::MulAdd(hn::Mul(x, Set<T>(w[0])), AroundZero<T>::slope(x), s);
      });
    }
    for (int64_t p = ends[3]; p < problem_.shape.depth; ++p) {
      const auto q = hn::Load(d, panel + p * kLanes<T>);
      each(p, [&](Vec<T> s, const T* k, const T* w) HWY_ATTR {
        const auto x = Clamp<T>(hn::Add(q, Set<T>(k[0])), AdditiveLimits<T>::kClamp);
        const auto power = ExpOfTwice<T>(x, hn::Zero(d));
        return hn::Add(s, hn::Div(Set<T>(w[0]), hn::Add(Set<T>(1), power)));
      });
    }
#pragma GCC unroll 4
    for (int j = 0; j < kKeys; ++j) hn::Store(sum[j], d, to + j * width);
  }

  const Problem<T>& problem_;
  const AdditivePlan<T>& plan_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
