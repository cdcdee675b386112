#if defined(ATTEND_KERNELS_ONLINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ONLINE_INL_H_
#undef ATTEND_KERNELS_ONLINE_INL_H_
#else
#define ATTEND_KERNELS_ONLINE_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "attend/kernels/cpu/bfloat16-inl.h"
#include "attend/kernels/cpu/normaliser-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Tiles are [keys][width]: a vector holds one key's score for several queries, which makes every
// step of the normaliser vertical. Scores are in units of log4.

template <class T>
HWY_INLINE Vec<T> Finite0(Vec<T> x) {
  return hn::IfThenZeroElse(hn::Eq(x, Set<T>(-std::numeric_limits<T>::infinity())), x);
}

// State of a normaliser for a panel of queries while tiles of keys pass: the maximum and the sum
// for softmax and softpick, and the rest of the stick for stick-breaking. Normalisers without a sum
// only record whether a row has seen a key.
template <class T>
struct OnlineNormaliser {
  // A row is rescaled only if its maximum grows by more than this: weights stay below 2^8.
  static constexpr T kSlack = 4;

  RowNormaliser<T> normaliser;
  // [width] subtracted from the scores: near the largest for softmax, for softpick the whole number
  // below the largest or 0, otherwise 0; for stick-breaking -log4 of the rest after the keys
  T* reference;
  // [width] of 4^(score - reference) for softmax, of |4^(score - reference) - 4^-reference| for
  // softpick; otherwise 1 if a key was seen; NaN after a NaN
  T* sum;
  T scale = 1;  // update_packed: factor that the scores of tiles still lack, above 0

  void start(int64_t width) const {
    const T lowest = -std::numeric_limits<T>::infinity();
    std::fill_n(reference, width, normaliser.kind == Normaliser::softmax ? lowest : T(0));
    std::fill_n(sum, width, T(0));
  }

  // Starts with one score, in units of log4, without a value.
  void start_with_sink(int64_t width, T sink) const {
    std::fill_n(reference, width, sink);
    std::fill_n(sum, width, T(1));
  }

  // Turns scores into weights in place; rescales context [value_depth][width] if necessary.
  void update(T* tile, int64_t keys, int64_t width, T* context, int64_t value_depth) const {
    if (normaliser.kind == Normaliser::softpick)
      return update_picked(tile, keys, width, context, value_depth);
    if (is_ordered(normaliser.kind)) return update_broken(tile, keys, width, context, value_depth);
    if (normaliser.kind != Normaliser::softmax) {
      note_keys(tile, keys, width);
      return WeighTile(normaliser, {reference, reference}, keys, width, tile);
    }
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      raise(tile + lane, keys, width, lane, context, value_depth);
      weigh(tile + lane, keys, width, lane);
    }
  }

  // The same for softmax; packs the weights as a right operand of bf16 products and leaves the
  // tile.
  void update_packed(const float* tile, const BFloat16Rows& place, int64_t width, float* context,
                     int64_t value_depth, uint32_t* to) const {
    const Tag<float> d;
    for (int64_t lane = 0; lane < width; lane += kLanes<float>) {
      raise(tile + lane, place.rows, width, lane, context, value_depth);
      const auto shift = Finite0<float>(hn::Load(d, reference + lane)), factor = Set(scale);
      auto total = hn::Load(d, sum + lane);
      // Not MulSub: the reference is a rounded product.
      const auto weigh = [&](int64_t j) HWY_ATTR {
        const auto score = hn::Mul(hn::Load(d, tile + j * width + lane), factor);
        const auto weight = Exp4<float, Exp2ForBFloat16>(hn::Sub(score, shift));
        total = hn::Add(total, weight);
        return weight;
      };
      PackColumns(place, width, weigh, to + lane);
      hn::Store(total, d, sum + lane);
    }
  }

  // The same for `rows` queries, few of the `width`. Vectors hold a row's keys, at most kTileKeys.
  void update_rows(T* tile, int64_t keys, int64_t rows, int64_t width, T* context,
                   int64_t value_depth) const {
    const Tag<T> d;
    HWY_ALIGN T scores[kTileKeys];
    for (int64_t r = 0; r < rows; ++r) {
      std::fill(scores + keys, scores + kTileKeys, -std::numeric_limits<T>::infinity());
      auto peak = Set<T>(-std::numeric_limits<T>::infinity());
      for (int64_t j = 0; j < keys; ++j) scores[j] = tile[j * width + r];
      for (int64_t j = 0; j < keys; j += kLanes<T>)
        peak = MaxOrSecond<T>(hn::Load(d, scores + j), peak);
      const T top = std::max(reference[r], hn::GetLane(hn::MaxOfLanes(d, peak)));
      if (top > reference[r] + kSlack) {
        const T factor = hn::GetLane(Exp4<T>(Set<T>(reference[r] - top)));
        for (int64_t e = 0; e < value_depth; ++e) context[e * width + r] *= factor;
        sum[r] *= factor;
        reference[r] = top;
      }
      const auto shift = Finite0<T>(Set<T>(reference[r]));
      auto total = hn::Zero(d);
      for (int64_t j = 0; j < keys; j += kLanes<T>) {
        const auto weight = Exp4<T>(hn::Sub(hn::Load(d, scores + j), shift));
        total = hn::Add(total, weight);
        hn::Store(weight, d, scores + j);
      }
      sum[r] += hn::GetLane(hn::SumOfLanes(d, total));
      for (int64_t j = 0; j < keys; ++j) tile[j * width + r] = scores[j];
    }
  }

  // The divisor of a row over 4^reference; 0 without keys.
  T divisor(int64_t r) const {
    if (normaliser.kind != Normaliser::softpick || sum[r] == 0) return sum[r];
    return sum[r] + T(kSoftpickFloor) * std::exp2(-2 * reference[r]);
  }

  // Turns the context into averages in place, and reference and sum into two summands of the lse,
  // in natural units. of_all: false if the result is merged with others: softpick then lacks its
  // floor, and the reference of stick-breaking remains.
  void finish(T* context, int64_t value_depth, int64_t width, bool of_all = true) const {
    const Tag<T> d;
    const bool sums = sums_exponentials(normaliser.kind);
    for (int64_t r = 0; of_all && r < width; ++r) sum[r] = divisor(r);
    if (of_all && is_ordered(normaliser.kind)) std::fill_n(reference, width, T(0));
    for (int64_t lane = 0; sums && lane < width; lane += kLanes<T>) {
      const auto total = hn::Load(d, sum + lane);
      const auto inverse =
          hn::IfThenZeroElse(hn::Eq(total, hn::Zero(d)), hn::Div(Set<T>(1), total));
      scale_columns(context, value_depth, width, lane, inverse);
    }
    // Converting back a largest number may round up to infinity.
    constexpr T kMost = std::numeric_limits<T>::max();
    for (int64_t r = 0; r < width; ++r) {
      if (sum[r] == 0) {
        reference[r] = -std::numeric_limits<T>::infinity();
        continue;
      }
      const T natural = reference[r] * T(kLn4);
      reference[r] = std::isfinite(reference[r]) ? std::clamp(natural, -kMost, kMost) : natural;
      sum[r] = sums ? std::log(sum[r]) : sum[r] - 1;
    }
  }

 private:
  // Later keys break their shares off first, so earlier weights are multiplied by the rest after a
  // tile.
  void update_broken(T* tile, int64_t keys, int64_t width, T* context, int64_t value_depth) const {
    const Tag<T> d;
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const bool fresh = hn::AllTrue(d, hn::Eq(hn::Load(d, sum + lane), hn::Zero(d)));
      note_lanes(tile + lane, keys, width, lane);
      const auto gone = BreakLanes<T>(keys, width, hn::Zero(d), tile + lane);
      hn::Store(hn::Add(hn::Load(d, reference + lane), gone), d, reference + lane);
      if (!fresh) scale_columns(context, value_depth, width, lane, Exp4<T>(hn::Neg(gone)));
    }
  }

  void note_keys(const T* tile, int64_t keys, int64_t width) const {
    for (int64_t lane = 0; lane < width; lane += kLanes<T>)
      note_lanes(tile + lane, keys, width, lane);
  }

  HWY_INLINE void note_lanes(const T* tile, int64_t keys, int64_t width, int64_t lane) const {
    const Tag<T> d;
    const auto outside = Set<T>(-std::numeric_limits<T>::infinity());
    auto seen = hn::Load(d, sum + lane), poison = seen;
    for (int64_t j = 0; j < keys; ++j) {
      const auto s = hn::Load(d, tile + j * width);
      seen = hn::IfThenElse(hn::Eq(s, outside), seen, Set<T>(1));
      poison = hn::IfThenElse(hn::IsNaN(s), s, poison);
    }
    hn::Store(MaxOrSecond<T>(seen, poison), d, sum + lane);
  }

  void update_picked(T* tile, int64_t keys, int64_t width, T* context, int64_t value_depth) const {
    const Tag<T> d;
    const auto outside = Set<T>(-std::numeric_limits<T>::infinity()), zero = hn::Zero(d);
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto before = hn::Load(d, reference + lane);
      auto top = before;
      for (int64_t j = 0; j < keys; ++j)
        top = MaxOrSecond<T>(hn::Load(d, tile + j * width + lane), top);
      auto total = hn::Load(d, sum + lane);
      // Scores up to 1 are not moved, which would round them.
      top = MaxOrSecond<T>(hn::Floor(top), before);
      if (!hn::AllFalse(d, hn::Gt(top, before))) {
        hn::Store(top, d, reference + lane);
        const auto factor = WholePowerOf4<T>(hn::Sub(before, top));
        total = hn::Mul(total, factor);
        scale_columns(context, value_depth, width, lane, factor);
      }
      const auto less = WholePowerOf4<T>(hn::Neg(top));
      for (int64_t j = 0; j < keys; ++j) {
        T* const cell = tile + j * width + lane;
        const auto s = hn::Load(d, cell);
        const auto raw = Exp4Less<T>(hn::Sub(s, top), less);
        total = hn::Add(total, hn::IfThenZeroElse(hn::Eq(s, outside), hn::Abs(raw)));
        hn::Store(hn::IfThenZeroElse(hn::Lt(raw, zero), raw), d, cell);
      }
      hn::Store(total, d, sum + lane);
    }
  }

  // `context` may be null if values have depth 0.
  static HWY_INLINE void scale_columns(T* context, int64_t value_depth, int64_t width, int64_t lane,
                                       Vec<T> factor) {
    const Tag<T> d;
    for (int64_t e = 0; e < value_depth; ++e) {
      T* const cell = context + e * width + lane;
      hn::Store(hn::Mul(hn::Load(d, cell), factor), d, cell);
    }
  }

  HWY_INLINE void raise(const T* tile, int64_t keys, int64_t width, int64_t lane, T* context,
                        int64_t value_depth) const {
    const Tag<T> d;
    const auto before = hn::Load(d, reference + lane);
    const auto lowest = Set<T>(-std::numeric_limits<T>::infinity());
    constexpr int64_t kChains = 4;
    Vec<T> tops[kChains] = {lowest, lowest, lowest, lowest};
    int64_t j = 0;
    for (; j + kChains <= keys; j += kChains) {
#pragma GCC unroll 4
      for (int64_t n = 0; n < kChains; ++n)
        tops[n] = MaxOrSecond<T>(hn::Load(d, tile + (j + n) * width), tops[n]);
    }
    for (; j < keys; ++j) tops[0] = MaxOrSecond<T>(hn::Load(d, tile + j * width), tops[0]);
    const auto most =
        MaxOrSecond<T>(MaxOrSecond<T>(tops[3], tops[2]), MaxOrSecond<T>(tops[1], tops[0]));
    const auto top = MaxOrSecond<T>(hn::Mul(most, Set<T>(scale)), before);
    if (hn::AllFalse(d, hn::Gt(top, hn::Add(before, Set<T>(kSlack))))) return;
    hn::Store(top, d, reference + lane);
    const auto factor = Exp4<T>(hn::Sub(before, Finite0<T>(top)));
    const auto total = hn::Load(d, sum + lane);
    if (hn::AllTrue(d, hn::Eq(total, hn::Zero(d)))) return;  // nothing to rescale yet
    hn::Store(hn::Mul(total, factor), d, sum + lane);
    scale_columns(context, value_depth, width, lane, factor);
  }

  HWY_INLINE void weigh(T* tile, int64_t keys, int64_t width, int64_t lane) const {
    const Tag<T> d;
    const auto shift = Finite0<T>(hn::Load(d, reference + lane));
    auto total = hn::Load(d, sum + lane);
    for (int64_t j = 0; j < keys; ++j) {
      const auto weight = Exp4<T>(hn::Sub(hn::Load(d, tile + j * width), shift));
      total = hn::Add(total, weight);
      hn::Store(weight, d, tile + j * width);
    }
    hn::Store(total, d, sum + lane);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
