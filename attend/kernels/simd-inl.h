// Included once a target.
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

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
inline constexpr int64_t kLanes = hn::MaxLanes(Tag<T>());

inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2 = 0.6931471805599453;

template <class T>
HWY_INLINE Vec<T> Set(T value) {
  return hn::Set(Tag<T>(), value);
}

template <class T>
constexpr int64_t RoundUpToLanes(int64_t count) {
  return (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// What a floating type needs for 2^x: x + magic has round(x) in its low bits.
template <class T>
struct Exp2Traits;
template <>
struct Exp2Traits<float> {
  using Bits = int32_t;
  static constexpr float kMagic = 12582912.0f;
  static constexpr int kShift = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kLowest = -126.0f;
  // Minimax of 2^r on [-0.5, 0.5], relative error 7.5e-8.
  static constexpr float kCoefficients[] = {1.000000119e+00f, 6.931469440e-01f, 2.402212024e-01f,
                                            5.550713092e-02f, 9.675540961e-03f, 1.327647245e-03f};
};
template <>
struct Exp2Traits<double> {
  using Bits = int64_t;
  static constexpr double kMagic = 6755399441055744.0;
  static constexpr int kShift = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kLowest = -1022.0;
  // Taylor: ln(2)^k / k!; the next term is below 4e-18.
  static constexpr double kCoefficients[] = {
      1.0,
      0.69314718055994531,
      0.24022650695910071,
      0.055504108664821580,
      0.0096181291076284772,
      0.0013333558146428443,
      1.5403530393381609e-4,
      1.5252733804059840e-5,
      1.3215486790144309e-6,
      1.0178086009239699e-7,
      7.0549116208011233e-9,
      4.4455382718708114e-10,
      2.5678435993488205e-11,
      1.3691488853904129e-12,
  };
};

// 2^x for x up to the largest exponent; 0 below the smallest normal number; NaN stays NaN.
template <class T>
HWY_INLINE Vec<T> Exp2(Vec<T> x) {
  using Traits = Exp2Traits<T>;
  const Tag<T> d;
  const hn::Rebind<typename Traits::Bits, Tag<T>> bits;
  const auto magic = Set<T>(Traits::kMagic);
  const auto shifted = hn::Add(x, magic);
  const auto r = hn::Sub(x, hn::Sub(shifted, magic));
  constexpr int kDegree = sizeof(Traits::kCoefficients) / sizeof(T) - 1;
  auto power = Set<T>(Traits::kCoefficients[kDegree]);
#pragma GCC unroll 16
  for (int k = kDegree - 1; k >= 0; --k) {
    power = hn::MulAdd(power, r, Set<T>(Traits::kCoefficients[k]));
  }
  const auto exponent = hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, Traits::kBias));
  const auto scale = hn::BitCast(d, hn::ShiftLeft<Traits::kShift>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, Set<T>(Traits::kLowest)), hn::Mul(power, scale));
}

// Larger of the two; the second where either is NaN, on every target.
template <class T>
HWY_INLINE Vec<T> MaxOrSecond(Vec<T> a, Vec<T> b) {
  return hn::IfThenElse(hn::Gt(a, b), a, b);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
