#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace attend::kernels {

// Sixteen bits of storage; the arithmetic is float.
struct BFloat16 {
  uint16_t bits = 0;
};
struct Float16 {
  uint16_t bits = 0;
};

// What numbers stored as S are computed in.
template <class S>
using Compute = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <class S>
inline constexpr bool kIsHalf = std::is_same_v<S, BFloat16> || std::is_same_v<S, Float16>;

// Exact.
inline float widen(BFloat16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
float widen(Float16 x);

// To the nearest, ties to even; NaN stays NaN.
template <class S>
S narrow(float x);

}  // namespace attend::kernels
