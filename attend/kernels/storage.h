#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace attend::kernels {

// 16-bit storage formats; the arithmetic is float.
struct BFloat16 {
  uint16_t bits = 0;
};
struct Float16 {
  uint16_t bits = 0;
};

// Arithmetic type of numbers stored as S.
template <class S>
using Compute = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <class S>
inline constexpr bool kIsHalf = std::is_same_v<S, BFloat16> || std::is_same_v<S, Float16>;

// Exact.
inline float widen(BFloat16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

inline float widen(Float16 x) {
  const uint32_t magnitude = (uint32_t{x.bits} & 0x7fffu) << 13;
  // The multiplication moves the exponent and is also correct for subnormal numbers.
  const float moved = std::bit_cast<float>(magnitude) * 0x1p112f;
  // The largest exponent means infinity or NaN in both formats.
  const uint32_t bits =
      magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : std::bit_cast<uint32_t>(moved);
  return std::bit_cast<float>(bits | (uint32_t{x.bits} & 0x8000u) << 16);
}

// Rounds to the nearest, ties to even; NaN stays NaN.
template <class S>
S narrow(float x);

template <>
inline BFloat16 narrow(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  // adds half of the last kept place, and one more if that place is odd: ties go to even
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return {static_cast<uint16_t>(nan ? bits >> 16 | 0x40u : rounded >> 16)};
}

template <>
inline Float16 narrow(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  // Below the smallest normal number the last place is 2^-24, as for 0.5 in a float.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return {static_cast<uint16_t>(sign | (magnitude < 0x477ff000u ? finite : special))};
}

}  // namespace attend::kernels
