#if defined(ATTEND_KERNELS_STICK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_STICK_INL_H_
#undef ATTEND_KERNELS_STICK_INL_H_
#else
#define ATTEND_KERNELS_STICK_INL_H_
#endif

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Stick-breaking for rows in lanes, scores [keys][width] in units of log4. From the last key to the
// first, a key with score s takes the share 1 / (1 + 4^-s) of the rest of a stick of length 1.
// `gone` is -log4 of the rest. Unlike a product of many factors near 1, a sum of logarithms keeps
// its digits. A key with score -inf takes nothing.

// log4(1 + x) for x from 0 to 1, exact in all digits: 2 atanh(x / (2 + x)) as a series, which ends
// below the rounding.
template <class T>
HWY_INLINE Vec<T> Log4Of1Plus(Vec<T> x) {
  constexpr int kTerms = sizeof(T) == 4 ? 7 : 16;
  const auto t = hn::Div(x, hn::Add(x, Set<T>(2))), square = hn::Mul(t, t);
  auto sum = Set<T>(T(kLog2E / (2 * kTerms - 1)));
#pragma GCC unroll 16
  for (int k = kTerms - 2; k >= 0; --k)
    sum = hn::MulAdd(sum, square, Set<T>(T(kLog2E / (2 * k + 1))));
  return hn::Mul(sum, t);
}

// log4 of the two parts into which a key breaks the rest.
template <class T>
struct BrokenLogs {
  Vec<T> taken;  // log4 of the share of the key
  Vec<T> gone;   // -log4 of the rest

  // power: 4^-|s|
  HWY_INLINE BrokenLogs(Vec<T> s, Vec<T> power) {
    const auto zero = hn::Zero(Tag<T>()), log = Log4Of1Plus<T>(power);
    taken = hn::Sub(hn::IfThenElse(hn::Lt(s, zero), s, zero), log);
    gone = hn::Add(MaxOrSecond<T>(zero, s), log);
  }
};

template <class T>
HWY_INLINE Vec<T> PowerOfSize(Vec<T> s) {
  return Exp4<T>(hn::Neg(hn::Abs(s)));
}

// Lanes with the sign bit, also -0.
template <class T>
HWY_INLINE hn::Mask<Tag<T>> HasSign(Vec<T> x) {
  const Tag<T> d;
  const hn::RebindToSigned<Tag<T>> bits;
  return hn::RebindMask(d, hn::Lt(hn::BitCast(bits, x), hn::Zero(bits)));
}

// Turns the scores of one vector of rows into weights, in place. `gone` counts the keys after the
// tile; the result also counts the keys of the tile.
template <class T>
HWY_INLINE Vec<T> BreakLanes(int64_t keys, int64_t width, Vec<T> gone, T* tile) {
  const Tag<T> d;
  for (int64_t j = keys - 1; j >= 0; --j) {
    const auto s = hn::Load(d, tile + j * width);
    const BrokenLogs<T> logs(s, PowerOfSize<T>(s));
    hn::Store(Exp4<T>(hn::Sub(logs.taken, gone)), d, tile + j * width);
    gone = hn::Add(gone, logs.gone);
  }
  return gone;
}

// Adds the keys of the tile to gone [width].
template <class T>
void AddGone(int64_t keys, int64_t width, const T* tile, T* gone) {
  const Tag<T> d;
  for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
    auto sum = hn::Load(d, gone + lane);
    for (int64_t j = keys - 1; j >= 0; --j) {
      const auto s = hn::Load(d, tile + j * width + lane);
      sum = hn::Add(sum, BrokenLogs<T>(s, PowerOfSize<T>(s)).gone);
    }
    hn::Store(sum, d, gone + lane);
  }
}

// before[i] += sum_j w_ij dp_ij for weights w and their gradients dp.
template <class T>
void AddProducts(int64_t keys, int64_t width, const T* weights, const T* gradients, T* before) {
  const Tag<T> d;
  for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
    const int64_t lane = i % width;
    const auto sum = hn::MulAdd(hn::Load(d, weights + i), hn::Load(d, gradients + i),
                                hn::Load(d, before + lane));
    hn::Store(sum, d, before + lane);
  }
}

// Turns scores into weights w and weight gradients dp into score gradients, both in place:
// ds_k = (1 - b_k) w_k dp_k - b_k sum_{j < k} w_j dp_j with the shares b. gone: as in BreakLanes.
// before: the sum over the keys before the tile; then also over the tile. Summed from the first key
// on, it has no rounding of larger terms. powers: room for [keys][width].
template <class T>
void DifferentiateStick(int64_t keys, int64_t width, const T* gone, T* before, T* powers, T* scores,
                        T* gradients) {
  const Tag<T> d;
  for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
    auto after = hn::Load(d, gone + lane);
    for (int64_t j = keys - 1; j >= 0; --j) {
      T* const cell = scores + j * width + lane;
      const auto s = hn::Load(d, cell), power = PowerOfSize<T>(s);
      const BrokenLogs<T> logs(s, power);
      hn::Store(hn::CopySign(power, s), d, powers + j * width + lane);
      hn::Store(Exp4<T>(hn::Sub(logs.taken, after)), d, cell);
      after = hn::Add(after, logs.gone);
    }
    auto sum = hn::Load(d, before + lane);
    for (int64_t j = 0; j < keys; ++j) {
      const auto signed_power = hn::Load(d, powers + j * width + lane);
      const auto power = hn::Abs(signed_power);
      const auto larger = hn::Div(Set<T>(1), hn::Add(power, Set<T>(1)));
      const auto smaller = hn::Mul(power, larger);
      const auto negative = HasSign<T>(signed_power);
      const auto share = hn::IfThenElse(negative, smaller, larger);
      const auto rest = hn::IfThenElse(negative, larger, smaller);
      T* const cell = gradients + j * width + lane;
      const auto product = hn::Mul(hn::Load(d, scores + j * width + lane), hn::Load(d, cell));
      hn::Store(hn::NegMulAdd(share, sum, hn::Mul(rest, product)), d, cell);
      sum = hn::Add(sum, product);
    }
    hn::Store(sum, d, before + lane);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
