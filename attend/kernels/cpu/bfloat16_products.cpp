#include "attend/kernels/bfloat16_products.h"

#include <atomic>
#include <cstring>

#include "attend/kernels/cpu/plan-inl.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <hwy/base.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace attend::kernels {
namespace {

constexpr int64_t kSide = 16;        // rows of a tile, and its fp32 columns
constexpr int64_t kTileDepth = 32;   // bf16 numbers per row of a tile
constexpr int64_t kRowBytes = 64;    // per tile row
constexpr unsigned kTileState = 18;  // XFEATURE_XTILEDATA

// Operand of ldtilecfg.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {kRowBytes, kRowBytes, kRowBytes, kRowBytes,
                            kRowBytes, kRowBytes, kRowBytes, kRowBytes};
  uint8_t rows[16] = {kSide, kSide, kSide, kSide, kSide, kSide, kSide, kSide};
};

uint64_t enabled_states() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool cpu_has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kXsave = 1u << 27, kTile = 1u << 24, kTileBf16 = 1u << 22;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kTile) == 0 || (d & kTileBf16) == 0) return false;
  constexpr uint64_t kTileStates = 3u << 17;
  return (enabled_states() & kTileStates) == kTileStates;
}

// Linux grants a process the registers only on request, since they make context switches slower.
bool system_grants_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileState) == 0;
}

}  // namespace
}  // namespace attend::kernels

HWY_PUSH_ATTRIBUTES("amx-tile,amx-bf16,avx512f")
static_assert(true);  // keeps the macro separate from the namespace
namespace attend::kernels {
namespace {

void take_tiles() {
  static constexpr TileShapes kShapes;
  _tile_loadconfig(&kShapes);
}

void release_tiles() { _tile_release(); }

// Tiles 0 to 3 hold sums, 4 and 5 rows, 6 and 7 columns. Each is loaded between the products of the
// previous ones.
template <int kM, int kN>
HWY_INLINE void MultiplyTiles(const BFloat16Product& p, int64_t row, int64_t column) {
  float* const out = p.out + row * p.out_stride + column;
  const int64_t bytes = p.out_stride * 4, below = kSide * p.out_stride;
  if (p.accumulate) {
    _tile_loadd(0, out, bytes);
    if constexpr (kN > 1) _tile_loadd(1, out + kSide, bytes);
    if constexpr (kM > 1) _tile_loadd(2, out + below, bytes);
    if constexpr (kM > 1 && kN > 1) _tile_loadd(3, out + below + kSide, bytes);
  } else {
    _tile_zero(0);
    if constexpr (kN > 1) _tile_zero(1);
    if constexpr (kM > 1) _tile_zero(2);
    if constexpr (kM > 1 && kN > 1) _tile_zero(3);
  }
  const int64_t left_bytes = p.left_stride * 2, right_bytes = p.right_stride * 4;
  for (int64_t k = 0; k < p.depth; k += kTileDepth) {
    const uint16_t* const left = p.left + row * p.left_stride + k;
    const uint32_t* const right = p.right + k / 2 * p.right_stride + column;
    _tile_loadd(4, left, left_bytes);
    _tile_loadd(6, right, right_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kM > 1) {
      _tile_loadd(5, left + kSide * p.left_stride, left_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kN > 1) {
      _tile_loadd(7, right + kSide, right_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kM > 1 && kN > 1) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, out, bytes);
  if constexpr (kN > 1) _tile_stored(1, out + kSide, bytes);
  if constexpr (kM > 1) _tile_stored(2, out + below, bytes);
  if constexpr (kM > 1 && kN > 1) _tile_stored(3, out + below + kSide, bytes);
}

// The same for two steps of depth and all rows: four tiles of columns are loaded once. Tiles 0 and
// 1 hold sums, 2 and 3 rows.
HWY_INLINE void MultiplyTwoSteps(const BFloat16Product& p, int64_t column) {
  const int64_t bytes = p.out_stride * 4;
  const int64_t left_bytes = p.left_stride * 2, right_bytes = p.right_stride * 4;
  const uint32_t* const right = p.right + column;
  const uint32_t* const next = right + kTileDepth / 2 * p.right_stride;
  _tile_loadd(4, right, right_bytes);
  _tile_loadd(5, right + kSide, right_bytes);
  _tile_loadd(6, next, right_bytes);
  _tile_loadd(7, next + kSide, right_bytes);
  for (int64_t row = 0; row < p.rows; row += kSide) {
    float* const out = p.out + row * p.out_stride + column;
    const uint16_t* const left = p.left + row * p.left_stride;
    if (p.accumulate) {
      _tile_loadd(0, out, bytes);
      _tile_loadd(1, out + kSide, bytes);
    } else {
      _tile_zero(0);
      _tile_zero(1);
    }
    _tile_loadd(2, left, left_bytes);
    _tile_dpbf16ps(0, 2, 4);
    _tile_dpbf16ps(1, 2, 5);
    _tile_loadd(3, left + kTileDepth, left_bytes);
    _tile_dpbf16ps(0, 3, 6);
    _tile_dpbf16ps(1, 3, 7);
    _tile_stored(0, out, bytes);
    _tile_stored(1, out + kSide, bytes);
  }
}

template <int kM>
HWY_INLINE void MultiplyRows(const BFloat16Product& p, int64_t row, int64_t column) {
  for (; column + 2 * kSide <= p.columns; column += 2 * kSide) MultiplyTiles<kM, 2>(p, row, column);
  if (column < p.columns) MultiplyTiles<kM, 1>(p, row, column);
}

void scale(const BFloat16Product& p) {
  const __m512 factor = _mm512_set1_ps(p.scale);
  for (int64_t r = 0; r < p.rows; ++r) {
    float* const row = p.out + r * p.out_stride;
    for (int64_t c = 0; c < p.columns; c += kSide)
      _mm512_storeu_ps(row + c, _mm512_mul_ps(_mm512_loadu_ps(row + c), factor));
  }
}

void multiply_tiles(const BFloat16Product& p) {
  int64_t column = 0;
  if (p.depth == 2 * kTileDepth) {
    for (; column + 2 * kSide <= p.columns; column += 2 * kSide) MultiplyTwoSteps(p, column);
  }
  int64_t row = 0;
  for (; row + 2 * kSide <= p.rows; row += 2 * kSide) MultiplyRows<2>(p, row, column);
  if (row < p.rows) MultiplyRows<1>(p, row, column);
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
  if (cpu_has_tiles() && system_grants_tiles()) return &kTiles;
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
