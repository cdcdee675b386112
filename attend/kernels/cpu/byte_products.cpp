#include "attend/kernels/byte_products.h"

#if defined(__x86_64__)

#include <hwy/base.h>
#include <hwy/cache_control.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "attend/kernels/cpu/tile_products.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512vnni")
static_assert(true);  // keeps the macro separate from the namespace
namespace attend::kernels {
namespace {

constexpr int64_t kPanel = 32, kLanes = 16;
// 16 sums; 2 ports x 5 cycles of latency need 10.
constexpr int kByteRows = 8;
constexpr int64_t kFetched = 64;  // number of depth steps fetched ahead

// to += whole a_scale scale
HWY_INLINE void add_scaled(__m512i whole, float a_scale, __m512 scale, float* to) {
  const __m512 number = __builtin_convertvector(reinterpret_cast<__v16si>(whole), __v16sf);
  const __m512 scaled = _mm512_mul_ps(number, _mm512_set1_ps(a_scale));
  _mm512_storeu_ps(to, _mm512_fmadd_ps(scaled, scale, _mm512_loadu_ps(to)));
}

// Multiplies kR rows from a on.
template <int kR>
void multiply_rows(const ByteProduct& p, const uint8_t* a, const float* a_scales, float* out) {
  __m512i sum[kR][2];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
  const int32_t* words = p.words;
  for (int64_t k = 0; k < p.depth; k += 4, words += kPanel) {
    const __m512i first = _mm512_loadu_si512(words), second = _mm512_loadu_si512(words + kLanes);
    hwy::Prefetch(words + kFetched * kPanel);
    hwy::Prefetch(words + kFetched * kPanel + kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      int32_t four = 0;
      std::memcpy(&four, a + r * p.depth + k, sizeof four);
      const __m512i x = _mm512_set1_epi32(four);
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], x, first);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], x, second);
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    const __m512i offset = _mm512_loadu_si512(p.offsets + v * kLanes);
    const __m512 scale = _mm512_loadu_ps(p.scales + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
      add_scaled(_mm512_sub_epi32(sum[r][v], offset), a_scales[r], scale,
                 out + r * p.out_stride + v * kLanes);
  }
}

// Rows that do not fill a step: at most kR.
template <int kR>
void multiply_rest(int64_t rows, const ByteProduct& p, const uint8_t* a, const float* a_scales,
                   float* out) {
  if constexpr (kR > 0) {
    if (rows == kR) return multiply_rows<kR>(p, a, a_scales, out);
    multiply_rest<kR - 1>(rows, p, a, a_scales, out);
  }
}

// Multiplies the rows from r on.
void multiply_from(const ByteProduct& p, int64_t r) {
  for (; r + kByteRows <= p.rows; r += kByteRows)
    multiply_rows<kByteRows>(p, p.a + r * p.depth, p.a_scales + r, p.out + r * p.out_stride);
  multiply_rest<kByteRows - 1>(p.rows - r, p, p.a + r * p.depth, p.a_scales + r,
                               p.out + r * p.out_stride);
}

void multiply_vectors(const ByteProduct& p) { multiply_from(p, 0); }

// Rows at once: their sums stay in the first-level cache.
constexpr int64_t kTileRows = 64;

// Rows that fill tiles, by tiles; the sums are the same.
void multiply_tiles(const ByteProduct& p) {
  if (p.depth % kTileStepBytes != 0) return multiply_vectors(p);
  const TileThread multiplies(true);
  alignas(64) int32_t sums[kTileRows * kPanel];
  const int64_t whole = p.rows / kTileSide * kTileSide;
  for (int64_t first = 0; first < whole; first += kTileRows) {
    const int64_t rows = std::min(kTileRows, whole - first);
    multiply_byte_tiles({.rows = rows,
                         .columns = kPanel,
                         .steps = p.depth / kTileStepBytes,
                         .left = reinterpret_cast<const char*>(p.a + first * p.depth),
                         .left_stride = p.depth,
                         .right = reinterpret_cast<const char*>(p.words),
                         .right_stride = 4 * kPanel,
                         .out = reinterpret_cast<char*>(sums),
                         .out_stride = 4 * kPanel,
                         .ahead = p.ahead});
    for (int64_t c = 0; c < kPanel; c += kLanes) {
      const __m512i offset = _mm512_loadu_si512(p.offsets + c);
      const __m512 scale = _mm512_loadu_ps(p.scales + c);
      for (int64_t r = 0; r < rows; ++r)
        add_scaled(_mm512_sub_epi32(_mm512_load_si512(sums + r * kPanel + c), offset),
                   p.a_scales[first + r], scale, p.out + (first + r) * p.out_stride + c);
    }
  }
  multiply_from(p, whole);
}

}  // namespace
}  // namespace attend::kernels
HWY_POP_ATTRIBUTES

namespace attend::kernels {

ByteKernel byte_kernel() {
  // GCC also checks that the system saves the 512-bit registers.
  static const bool is_there = __builtin_cpu_supports("avx512vnni") != 0;
  if (!is_there) return nullptr;
  return has_tiles() ? multiply_tiles : multiply_vectors;
}

}  // namespace attend::kernels

#else

namespace attend::kernels {

ByteKernel byte_kernel() { return nullptr; }

}  // namespace attend::kernels

#endif
