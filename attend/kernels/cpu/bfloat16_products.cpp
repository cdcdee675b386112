#include "attend/kernels/bfloat16_products.h"

#include <atomic>
#include <cstring>

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/rows_ahead-inl.h"
#include "attend/kernels/cpu/tile_products.h"

#if defined(__x86_64__) && defined(__linux__)

#include <hwy/base.h>
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx512f")
static_assert(true);  // keeps the macro separate from the namespace
namespace attend::kernels {
namespace {

constexpr int64_t kSide = 16;  // floats of a vector

void scale(const BFloat16Product& p) {
  const __m512 factor = _mm512_set1_ps(p.scale);
  for (int64_t r = 0; r < p.rows; ++r) {
    float* const row = p.out + r * p.out_stride;
    for (int64_t c = 0; c < p.columns; c += kSide)
      _mm512_storeu_ps(row + c, _mm512_mul_ps(_mm512_loadu_ps(row + c), factor));
  }
}

void multiply_tiles(const BFloat16Product& p) {
  constexpr int64_t numbers_of_step = 32;
  multiply_bfloat16_tiles({.rows = p.rows,
                           .columns = p.columns,
                           .steps = p.depth / numbers_of_step,
                           .left = reinterpret_cast<const char*>(p.left),
                           .left_stride = p.left_stride * 2,
                           .right = reinterpret_cast<const char*>(p.right),
                           .right_stride = p.right_stride * 4,
                           .accumulate = p.accumulate,
                           .out = reinterpret_cast<char*>(p.out),
                           .out_stride = p.out_stride * 4,
                           .ahead = p.ahead});
  if (p.scale != 1) scale(p);
}

}  // namespace
}  // namespace attend::kernels
HWY_POP_ATTRIBUTES

HWY_PUSH_ATTRIBUTES("avx512f,avx512bf16")
static_assert(true);
namespace attend::kernels {
namespace {

// Two bf16 numbers per column.
HWY_INLINE __m512bh LoadPairs(const uint32_t* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}

// The same two numbers for every column.
HWY_INLINE __m512bh RepeatPair(const uint16_t* from) {
  uint32_t pair;
  std::memcpy(&pair, from, sizeof pair);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
}

// Sums of this many rows and kN vectors of columns stay in registers.
constexpr int64_t kVectorRows = 8;
// Depth per step of the inner loop; unrolling makes mispredicted loop ends rarer.
constexpr int64_t kUnrolledDepth = 8;

// Adds the products of two numbers per row and column.
template <int kN>
HWY_INLINE void AddPairs(const uint16_t* left, int64_t left_stride, const uint32_t* right,
                         __m512 (&sums)[kVectorRows][kN]) {
  __m512bh columns[kN];
#pragma GCC unroll 2
  for (int n = 0; n < kN; ++n) columns[n] = LoadPairs(right + n * kSide);
#pragma GCC unroll 8
  for (int64_t r = 0; r < kVectorRows; ++r) {
    const __m512bh pair = RepeatPair(left + r * left_stride);
#pragma GCC unroll 2
    for (int n = 0; n < kN; ++n) sums[r][n] = _mm512_dpbf16_ps(sums[r][n], pair, columns[n]);
  }
}

template <int kN>
HWY_INLINE void MultiplyVectors(const BFloat16Product& p, int64_t row, int64_t column) {
  __m512 sums[kVectorRows][kN];
  float* const out = p.out + row * p.out_stride + column;
#pragma GCC unroll 8
  for (int64_t r = 0; r < kVectorRows; ++r) {
#pragma GCC unroll 2
    for (int n = 0; n < kN; ++n)
      sums[r][n] =
          p.accumulate ? _mm512_loadu_ps(out + r * p.out_stride + n * kSide) : _mm512_setzero_ps();
  }
  const uint16_t* const left = p.left + row * p.left_stride;
  const uint32_t* right = p.right + column;
  for (int64_t k = 0; k < p.depth; k += kUnrolledDepth) {
    if (p.ahead != nullptr) p.ahead->fetch_some();
#pragma GCC unroll 4
    for (int64_t step = k; step < k + kUnrolledDepth; step += 2, right += p.right_stride)
      AddPairs<kN>(left + step, p.left_stride, right, sums);
  }
  if (p.scale != 1) {
    const __m512 scale = _mm512_set1_ps(p.scale);
#pragma GCC unroll 8
    for (auto& row : sums) {
#pragma GCC unroll 2
      for (int n = 0; n < kN; ++n) row[n] = _mm512_mul_ps(row[n], scale);
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kVectorRows; ++r) {
#pragma GCC unroll 2
    for (int n = 0; n < kN; ++n) _mm512_storeu_ps(out + r * p.out_stride + n * kSide, sums[r][n]);
  }
}

void multiply_vectors(const BFloat16Product& p) {
  constexpr int64_t together = kVectorRows * kUnrolledDepth * 2 * kSide;
  if (p.ahead != nullptr) p.ahead->divide(p.rows * p.depth * p.columns / together);
  for (int64_t row = 0; row < p.rows; row += kVectorRows) {
    int64_t column = 0;
    for (; column + 2 * kSide <= p.columns; column += 2 * kSide) MultiplyVectors<2>(p, row, column);
    if (column < p.columns) MultiplyVectors<1>(p, row, column);
  }
}

}  // namespace
}  // namespace attend::kernels
HWY_POP_ATTRIBUTES

namespace attend::kernels {
namespace {

// vdpbf16ps has twice the fp32 multiply-add rate on AMD's processors, but not on Intel's.
bool cpu_has_fast_vectors() {
  return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16");
}

const BFloat16Kernels* find_kernels() {
  static constexpr BFloat16Kernels kTiles = {"AMX", take_tiles, release_tiles, multiply_tiles};
  static constexpr BFloat16Kernels kVectors = {"AVX512-BF16", [] {}, [] {}, multiply_vectors};
  if (has_tiles()) return &kTiles;
  return cpu_has_fast_vectors() ? &kVectors : nullptr;
}

}  // namespace
}  // namespace attend::kernels

#else

namespace attend::kernels {
namespace {

const BFloat16Kernels* find_kernels() { return nullptr; }

}  // namespace
}  // namespace attend::kernels

#endif

namespace attend::kernels {
namespace {

std::atomic<bool> kernels_allowed = true;

}  // namespace

const BFloat16Kernels* bfloat16_kernels() {
  static const BFloat16Kernels* const kernels = find_kernels();
  // The passes pack whole vectors of 16 numbers.
  return kernels != nullptr && kernels_allowed && packs_bfloat16() ? kernels : nullptr;
}

void allow_bfloat16_kernels(bool allowed) { kernels_allowed = allowed; }

}  // namespace attend::kernels
