// Included once per target.
#if defined(ATTEND_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_SIMD_INL_H_
#undef ATTEND_KERNELS_SIMD_INL_H_
#else
#define ATTEND_KERNELS_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/storage.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
inline constexpr int64_t kLanes = hn::MaxLanes(Tag<T>());

template <class T>
HWY_INLINE Vec<T> Set(T value) {
  return hn::Set(Tag<T>(), value);
}

template <class T>
constexpr int64_t RoundUpToLanes(int64_t count) {
  return (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// Loads a vector to compute with; bf16 numbers become floats.
template <class T>
HWY_INLINE Vec<T> Load(const T* from) {
  return hn::LoadU(Tag<T>(), from);
}

HWY_INLINE Vec<float> Load(const BFloat16* from) {
  const hn::Rebind<uint16_t, Tag<float>> narrow;
  const hn::Rebind<uint32_t, Tag<float>> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(Tag<float>(), hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

template <class T>
HWY_INLINE void Store(Vec<T> x, T* to) {
  hn::StoreU(x, Tag<T>(), to);
}

// As narrow(), for lanes without NaN.
HWY_INLINE void Store(Vec<float> x, BFloat16* to) {
  const hn::Rebind<uint16_t, Tag<float>> narrow;
  const hn::Rebind<uint32_t, Tag<float>> wide;
  const hn::Rebind<int32_t, Tag<float>> plain;
  const auto bits = hn::BitCast(wide, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fff)));
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(plain, hn::ShiftRight<16>(rounded))), narrow,
             reinterpret_cast<uint16_t*>(to));
}

// The larger of the two; the second if either is NaN, on every target.
template <class T>
HWY_INLINE Vec<T> MaxOrSecond(Vec<T> a, Vec<T> b) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}

// Constants of a floating type for 2^x. The low bits of x + magic contain round(x) plus the
// exponent bias.
template <class T>
struct Exp2Traits;
template <>
struct Exp2Traits<float> {
  using Bits = int32_t;
  static constexpr float kMagic = 12582912.0f + 127.0f;
  static constexpr int kShift = 23;
  static constexpr float kLowest = -126.0f;
  // 2^r = kFirst + r (kNext[0] + kNext[1] r + ..), minimax on [-0.5, 0.5], relative error 7.5e-8.
  static constexpr float kFirst = 1.000000119e+00f;
  static constexpr float kNext[] = {6.931469440e-01f, 2.402212024e-01f, 5.550713092e-02f,
                                    9.675540961e-03f, 1.327647245e-03f};
  // 2^r = 1 + r (kRise[0] + kRise[1] r + ..); the sum has a relative error of 1.1e-8.
  static constexpr float kRise[] = {6.931471825e-01f, 2.402265072e-01f, 5.550357140e-02f,
                                    9.618082557e-03f, 1.339086331e-03f, 1.545316249e-04f};
};
template <>
struct Exp2Traits<double> {
  using Bits = int64_t;
  static constexpr double kMagic = 6755399441055744.0 + 1023.0;
  static constexpr int kShift = 52;
  static constexpr double kLowest = -1022.0;
  // Taylor: ln(2)^k / k!; the next term is below 4e-18.
  static constexpr double kFirst = 1.0;
  static constexpr double kNext[] = {
      0.69314718055994531,    0.24022650695910071,   0.055504108664821580,   0.0096181291076284772,
      0.0013333558146428443,  1.5403530393381609e-4, 1.5252733804059840e-5,  1.3215486790144309e-6,
      1.0178086009239699e-7,  7.0549116208011233e-9, 4.4455382718708114e-10, 2.5678435993488205e-11,
      1.3691488853904129e-12,
  };
  static constexpr const auto& kRise = kNext;
};

// 2^r for weights that are rounded to bf16: one term less, relative error 2.7e-6.
struct Exp2ForBFloat16 {
  static constexpr float kFirst = 9.999992614e-01f;
  static constexpr float kNext[] = {6.931218147e-01f, 2.402474483e-01f, 5.591786032e-02f,
                                    9.570101911e-03f};
};

// coefficients[0] + coefficients[1] x + ..
template <class T, class Coefficients>
HWY_INLINE Vec<T> Polynomial(Vec<T> x, const Coefficients& coefficients) {
  constexpr int kDegree = sizeof(Coefficients) / sizeof(T) - 1;
  auto sum = Set<T>(coefficients[kDegree]);
#pragma GCC unroll 16
  for (int k = kDegree - 1; k >= 0; --k) sum = hn::MulAdd(sum, x, Set<T>(coefficients[k]));
  return sum;
}

// 2^n, with n in the low bits of `shifted`.
template <class T>
HWY_INLINE Vec<T> WholePower(Vec<T> shifted) {
  using Traits = Exp2Traits<T>;
  const hn::Rebind<typename Traits::Bits, Tag<T>> bits;
  return hn::BitCast(Tag<T>(), hn::ShiftLeft<Traits::kShift>(hn::BitCast(bits, shifted)));
}

// 2^(n + r), with n in the low bits of `shifted`.
template <class T, class Series>
HWY_INLINE Vec<T> PowerOfSum(Vec<T> shifted, Vec<T> r) {
  const auto rest = hn::MulAdd(Polynomial<T>(r, Series::kNext), r, Set<T>(Series::kFirst));
  return hn::Mul(rest, WholePower<T>(shifted));
}

// 2^x for x up to the largest exponent. From one exponent below the smallest normal number on, the
// bits of 2^n are 0, and so is the result. NaN stays NaN.
template <class T>
HWY_INLINE Vec<T> Exp2(Vec<T> x) {
  const auto magic = Set<T>(Exp2Traits<T>::kMagic);
  x = MaxOrSecond<T>(Set<T>(Exp2Traits<T>::kLowest - 1), x);
  const auto shifted = hn::Add(x, magic);
  return PowerOfSum<T, Exp2Traits<T>>(shifted, hn::Sub(x, hn::Sub(shifted, magic)));
}

// 4^x = Exp2(2 x), with the doubling as part of a multiply-add.
template <class T, class Series = Exp2Traits<T>>
HWY_INLINE Vec<T> Exp4(Vec<T> x) {
  const auto magic = Set<T>(Exp2Traits<T>::kMagic), two = Set<T>(2);
  x = MaxOrSecond<T>(Set<T>((Exp2Traits<T>::kLowest - 1) / 2), x);
  const auto shifted = hn::MulAdd(x, two, magic);
  return PowerOfSum<T, Series>(shifted, hn::MulSub(x, two, hn::Sub(shifted, magic)));
}

// 4^n for whole n up to 0; 0 below the smallest normal number.
template <class T>
HWY_INLINE Vec<T> WholePowerOf4(Vec<T> n) {
  const auto power = WholePower<T>(hn::MulAdd(n, Set<T>(2), Set<T>(Exp2Traits<T>::kMagic)));
  return hn::IfThenElseZero(hn::Not(hn::Lt(n, Set<T>(Exp2Traits<T>::kLowest / 2))), power);
}

// 4^x - less, with `less` a power of 4: exact in all digits also if both are nearly equal.
template <class T>
HWY_INLINE Vec<T> Exp4Less(Vec<T> x, Vec<T> less) {
  const auto magic = Set<T>(Exp2Traits<T>::kMagic), two = Set<T>(2);
  const auto shifted = hn::MulAdd(x, two, magic), power = WholePower<T>(shifted);
  const auto r = hn::MulSub(x, two, hn::Sub(shifted, magic));
  const auto rise = hn::Mul(r, Polynomial<T>(r, Exp2Traits<T>::kRise));  // 2^r - 1
  const auto low = hn::Lt(x, Set<T>(Exp2Traits<T>::kLowest / 2));
  return hn::IfThenElse(low, hn::Neg(less), hn::MulAdd(power, rise, hn::Sub(power, less)));
}

// e^(2x) - less for |x| well inside the range, with `less` 0 or 1. Both are exact in all digits,
// also near 0. 2 log2(e) is split into two parts: the product of a large x with one rounded
// constant would lose the last bits of the result.
template <class T>
HWY_INLINE Vec<T> ExpOfTwice(Vec<T> x, Vec<T> less) {
  constexpr double kFactor = 2 * kLog2E;
  constexpr T kHigh = static_cast<T>(kFactor);
  // The part of 2 log2(e) beyond the precision of a double.
  constexpr T kLow = std::is_same_v<T, float> ? static_cast<T>(kFactor - double(kHigh))
                                              : static_cast<T>(4.0710547481862066e-17);
  const auto magic = Set<T>(Exp2Traits<T>::kMagic);
  const auto shifted = hn::MulAdd(x, Set<T>(kHigh), magic);
  const auto r = hn::MulSub(x, Set<T>(kHigh), hn::Sub(shifted, magic));
  const auto rest = hn::MulAdd(x, Set<T>(kLow), r), power = WholePower<T>(shifted);
  // 2^n 2^r = 2^n + 2^n (2^r - 1)
  const auto rise = hn::Mul(rest, Polynomial<T>(rest, Exp2Traits<T>::kRise));
  return hn::MulAdd(power, rise, hn::Sub(power, less));
}

// 1 / x to working precision, for normal x with a normal reciprocal.
template <class T>
HWY_INLINE Vec<T> Reciprocal(Vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    const auto guess = hn::ApproximateReciprocal(x);
#if HWY_TARGET == HWY_NEON
    const auto better = hn::Mul(guess, hn::NegMulAdd(x, guess, Set<T>(2)));
    return hn::Mul(better, hn::NegMulAdd(x, better, Set<T>(2)));
#else
    return hn::Mul(guess, hn::NegMulAdd(x, guess, Set<T>(2)));
#endif
  } else {
    return hn::Div(Set<T>(1), x);
  }
}

// x within [-limit, limit]; NaN stays NaN.
template <class T>
HWY_INLINE Vec<T> Clamp(Vec<T> x, T limit) {
  const auto high = Set<T>(limit), low = Set<T>(-limit);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  return hn::Max(low, hn::Min(high, x));  // returns the second operand if either is NaN
#else
  x = hn::IfThenElse(hn::Gt(x, high), high, x);
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
