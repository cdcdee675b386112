#if defined(ATTEND_KERNELS_GATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_GATES_INL_H_
#undef ATTEND_KERNELS_GATES_INL_H_
#else
#define ATTEND_KERNELS_GATES_INL_H_
#endif

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// 1 / (1 + 2^-x), within a few units of 2^-24; NaN stays NaN.
HWY_INLINE Vec<float> PowerShare(Vec<float> x) {
  // 2^100 and its reciprocal are normal numbers.
  const auto power = Exp2<float>(hn::Neg(Clamp<float>(x, 100)));
  return Reciprocal<float>(hn::Add(Set<float>(1), power));
}

HWY_INLINE Vec<float> Sigmoid(Vec<float> x) {
  return PowerShare(hn::Mul(x, Set<float>(static_cast<float>(kLog2E))));
}

// 2 sigmoid(2x) - 1: the error is small relative to 1, not relative to the result near 0.
HWY_INLINE Vec<float> Tanh(Vec<float> x) {
  const auto half = PowerShare(hn::Mul(x, Set<float>(static_cast<float>(2 * kLog2E))));
  return hn::Sub(hn::Add(half, half), Set<float>(1));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
