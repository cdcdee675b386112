#if defined(ATTEND_KERNELS_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_BYTES_INL_H_
#undef ATTEND_KERNELS_BYTES_INL_H_
#else
#define ATTEND_KERNELS_BYTES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "attend/kernels/byte_products.h"
#include "attend/kernels/cpu/matmul-inl.h"
#include "attend/kernels/packed_matrix.h"

// Products of signed weight bytes and unsigned row bytes, the combination that x86 instructions
// multiply.

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Largest |x_k|; NaN if any is NaN: as integers, magnitudes of floats keep their order.
HWY_INLINE float LargestMagnitude(const float* x, int64_t count) {
  const Tag<float> d;
  const hn::Rebind<int32_t, Tag<float>> bits;
  auto largest = hn::Zero(bits);
  int64_t k = 0;
  for (; k + kLanes<float> <= count; k += kLanes<float>)
    largest = hn::Max(largest, hn::BitCast(bits, hn::Abs(hn::LoadU(d, x + k))));
  int32_t found = hn::GetLane(hn::MaxOfLanes(bits, largest));
  for (; k < count; ++k) {
    int32_t own = 0;
    const float magnitude = std::abs(x[k]);
    std::memcpy(&own, &magnitude, sizeof own);
    found = std::max(found, own);
  }
  float result = 0;
  std::memcpy(&result, &found, sizeof result);
  return result;
}

// Rounds x_k = scale (byte_k - PackedMatrix::byte_zero) within scale / 2, padded with zeros to
// whole groups. Returns the scale, the largest |x_k| / 127.
inline HWY_NOINLINE float RoundToBytes(const float* x, int64_t count, uint8_t* bytes) {
  constexpr float kSmallest = 0x1p-100F;  // its reciprocal is finite
  constexpr float kSteps = 127;
  const float largest = LargestMagnitude(x, count);
  const bool counts = largest >= kSmallest && std::isfinite(largest);
  const float factor = counts ? kSteps / largest : 0;
  const Tag<float> d;
  const hn::Rebind<uint8_t, Tag<float>> d8;
  const auto times = hn::Set(d, factor);
  const auto zero = hn::Set(hn::Rebind<int32_t, Tag<float>>(), PackedMatrix::byte_zero);
  int64_t k = 0;
  for (; k + kLanes<float> <= count && counts; k += kLanes<float>) {
    const auto whole = hn::NearestInt(hn::Mul(hn::LoadU(d, x + k), times));
    hn::StoreU(hn::DemoteTo(d8, hn::Add(whole, zero)), d8, bytes + k);
  }
  for (; k < count && counts; ++k)
    bytes[k] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(x[k] * factor)) +
                                    PackedMatrix::byte_zero);
  constexpr int64_t group = PackedMatrix::byte_group;
  std::fill(bytes + k, bytes + (count + group - 1) / group * group,
            uint8_t{PackedMatrix::byte_zero});
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  return counts ? largest / kSteps : 0;
}

// Returns sum + a0 w0 + a1 w1 + a2 w2 + a3 w3 for the four bytes of each lane; the bytes of a are
// unsigned, the bytes of w signed.
HWY_INLINE Vec<int32_t> AddByteProducts(Vec<int32_t> sum, Vec<int32_t> a, Vec<int32_t> w) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  // On x86, ReorderWidenMulAccumulate adds neighbours, which keeps the sum of each lane separate.
  const hn::Repartition<int16_t, Tag<int32_t>> half;
  const auto a_half = hn::BitCast(half, a), w_half = hn::BitCast(half, w);
  const hn::Repartition<uint16_t, Tag<int32_t>> no_sign;
  const auto odd = hn::BitCast(half, hn::ShiftRight<8>(hn::BitCast(no_sign, a_half)));
  auto none = hn::Zero(Tag<int32_t>());
  sum = hn::ReorderWidenMulAccumulate(Tag<int32_t>(), hn::And(a_half, hn::Set(half, 255)),
                                      hn::ShiftRight<8>(hn::ShiftLeft<8>(w_half)), sum, none);
  return hn::ReorderWidenMulAccumulate(Tag<int32_t>(), odd, hn::ShiftRight<8>(w_half), sum, none);
#else
  const auto byte = hn::Set(Tag<int32_t>(), 255);
  const auto multiply = [&](auto a_shifted, auto w_shifted) {
    sum = hn::Add(sum, hn::Mul(hn::And(a_shifted, byte), hn::ShiftRight<24>(w_shifted)));
  };
  multiply(a, hn::ShiftLeft<24>(w));
  multiply(hn::ShiftRight<8>(a), hn::ShiftLeft<16>(w));
  multiply(hn::ShiftRight<16>(a), hn::ShiftLeft<8>(w));
  multiply(hn::ShiftRight<24>(a), w);
  return sum;
#endif
}

// Multiplies kR rows from `a` on.
template <int kR>
HWY_NOINLINE void MultiplyByteRows(const ByteProduct& p, const uint8_t* a, const float* a_scales,
                                   float* out) {
  const Tag<float> d;
  const Tag<int32_t> d32;
  constexpr int64_t lanes = kLanes<float>, panel = PackedMatrix::panel;
  for (int64_t c = 0; c < panel; c += kPanel<float>) {
    Vec<int32_t> sum[kR][kVectorsPerStep];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectorsPerStep; ++v) sum[r][v] = hn::Zero(d32);
    }
    const int32_t* HWY_RESTRICT words = p.words + c;
    for (int64_t k = 0; k < p.depth; k += PackedMatrix::byte_group, words += panel) {
      Vec<int32_t> columns[kVectorsPerStep];
#pragma GCC unroll 16
      for (int v = 0; v < kVectorsPerStep; ++v) columns[v] = hn::LoadU(d32, words + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        int32_t four = 0;
        std::memcpy(&four, a + r * p.depth + k, sizeof four);
        const auto x = hn::Set(d32, four);
#pragma GCC unroll 16
        for (int v = 0; v < kVectorsPerStep; ++v)
          sum[r][v] = AddByteProducts(sum[r][v], x, columns[v]);
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectorsPerStep; ++v) {
      const int64_t column = c + v * lanes;
      const auto offset = hn::LoadU(d32, p.offsets + column);
      const auto scale = hn::LoadU(d, p.scales + column);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        const auto whole = hn::ConvertTo(d, hn::Sub(sum[r][v], offset));
        float* to = out + r * p.out_stride + column;
        const auto scaled = hn::Mul(whole, hn::Set(d, a_scales[r]));
        hn::StoreU(hn::MulAdd(scaled, scale, hn::LoadU(d, to)), d, to);
      }
    }
  }
}

// Rows that do not fill a step: at most kR.
template <int kR>
HWY_INLINE void MultiplyRestOfByteRows(int64_t rows, const ByteProduct& p, const uint8_t* a,
                                       const float* a_scales, float* out) {
  if constexpr (kR > 0) {
    if (rows == kR) return MultiplyByteRows<kR>(p, a, a_scales, out);
    MultiplyRestOfByteRows<kR - 1>(rows, p, a, a_scales, out);
  }
}

// Used if the processor lacks a ByteKernel.
inline HWY_NOINLINE void MultiplyBytes(const ByteProduct& p) {
  int64_t r = 0;
  for (; r + kRowsPerStep <= p.rows; r += kRowsPerStep)
    MultiplyByteRows<kRowsPerStep>(p, p.a + r * p.depth, p.a_scales + r, p.out + r * p.out_stride);
  MultiplyRestOfByteRows<kRowsPerStep - 1>(p.rows - r, p, p.a + r * p.depth, p.a_scales + r,
                                           p.out + r * p.out_stride);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
