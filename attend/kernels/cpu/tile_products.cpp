#include "attend/kernels/cpu/tile_products.h"

#include <algorithm>

#include "attend/kernels/cpu/rows_ahead-inl.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <hwy/base.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace attend::kernels {
namespace {

constexpr int64_t kSide = kTileSide, kRowBytes = kTileStepBytes;
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
  constexpr unsigned kXsave = 1u << 27, kTile = 1u << 24, kBytes = 1u << 25, kBFloat16 = 1u << 22;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kTile) == 0 || (d & kBytes) == 0 || (d & kBFloat16) == 0) return false;
  constexpr uint64_t kTileStates = 3u << 17;
  return (enabled_states() & kTileStates) == kTileStates;
}

// Linux grants a process the registers only on request, since they make context switches slower.
bool system_grants_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileState) == 0;
}

thread_local int takers = 0;

}  // namespace

bool has_tiles() {
  static const bool has = cpu_has_tiles() && system_grants_tiles();
  return has;
}

}  // namespace attend::kernels

HWY_PUSH_ATTRIBUTES("amx-tile,amx-bf16,amx-int8")
static_assert(true);  // keeps the macro separate from the namespace
namespace attend::kernels {

void take_tiles() {
  static constexpr TileShapes kShapes;
  if (takers++ == 0) _tile_loadconfig(&kShapes);
}

void release_tiles() {
  if (--takers == 0) _tile_release();
}

namespace {

// Adds the product of two tiles to a tile. A macro, since the numbers of tiles must be literals.
#define ATTEND_TILE_PRODUCT(sum, left, right) \
  do {                                        \
    if constexpr (kBytes)                     \
      _tile_dpbusd(sum, left, right);         \
    else                                      \
      _tile_dpbf16ps(sum, left, right);       \
  } while (false)

// Four times per step, because many fetches at once delay the loads of tiles.
constexpr int64_t kFetches = 4;

HWY_INLINE void Fetch(const TileProduct& p) {
  if (p.ahead != nullptr) p.ahead->fetch_some();
}

// Tiles 0 to 3 hold sums, 4 and 5 rows, 6 and 7 columns. Each is loaded between the products of the
// previous ones.
template <bool kBytes, int kM, int kN>
HWY_INLINE void MultiplyTiles(const TileProduct& p, int64_t row, int64_t column) {
  char* const out = p.out + row * p.out_stride + 4 * column;
  char* const below = out + kSide * p.out_stride;
  if (p.accumulate) {
    _tile_loadd(0, out, p.out_stride);
    if constexpr (kN > 1) _tile_loadd(1, out + kRowBytes, p.out_stride);
    if constexpr (kM > 1) _tile_loadd(2, below, p.out_stride);
    if constexpr (kM > 1 && kN > 1) _tile_loadd(3, below + kRowBytes, p.out_stride);
  } else {
    _tile_zero(0);
    if constexpr (kN > 1) _tile_zero(1);
    if constexpr (kM > 1) _tile_zero(2);
    if constexpr (kM > 1 && kN > 1) _tile_zero(3);
  }
  const char* left = p.left + row * p.left_stride;
  const char* right = p.right + 4 * column;
  for (int64_t step = 0; step < p.steps; ++step) {
    _tile_loadd(4, left, p.left_stride);
    Fetch(p);
    _tile_loadd(6, right, p.right_stride);
    Fetch(p);
    ATTEND_TILE_PRODUCT(0, 4, 6);
    if constexpr (kM > 1) {
      _tile_loadd(5, left + kSide * p.left_stride, p.left_stride);
      Fetch(p);
      ATTEND_TILE_PRODUCT(2, 5, 6);
    }
    if constexpr (kN > 1) {
      _tile_loadd(7, right + kRowBytes, p.right_stride);
      Fetch(p);
      ATTEND_TILE_PRODUCT(1, 4, 7);
    }
    if constexpr (kM > 1 && kN > 1) ATTEND_TILE_PRODUCT(3, 5, 7);
    left += kRowBytes;
    right += kSide * p.right_stride;
  }
  _tile_stored(0, out, p.out_stride);
  if constexpr (kN > 1) _tile_stored(1, out + kRowBytes, p.out_stride);
  if constexpr (kM > 1) _tile_stored(2, below, p.out_stride);
  if constexpr (kM > 1 && kN > 1) _tile_stored(3, below + kRowBytes, p.out_stride);
}

// The same for two steps and all rows: four tiles of columns are loaded once. Tiles 0 and 1 hold
// sums, 2 and 3 rows.
template <bool kBytes>
HWY_INLINE void MultiplyTwoSteps(const TileProduct& p, int64_t column) {
  const char* const right = p.right + 4 * column;
  const char* const next = right + kSide * p.right_stride;
  _tile_loadd(4, right, p.right_stride);
  _tile_loadd(5, right + kRowBytes, p.right_stride);
  _tile_loadd(6, next, p.right_stride);
  _tile_loadd(7, next + kRowBytes, p.right_stride);
  for (int64_t row = 0; row < p.rows; row += kSide) {
    char* const out = p.out + row * p.out_stride + 4 * column;
    const char* const left = p.left + row * p.left_stride;
    if (p.accumulate) {
      _tile_loadd(0, out, p.out_stride);
      _tile_loadd(1, out + kRowBytes, p.out_stride);
    } else {
      _tile_zero(0);
      _tile_zero(1);
    }
    _tile_loadd(2, left, p.left_stride);
    ATTEND_TILE_PRODUCT(0, 2, 4);
    ATTEND_TILE_PRODUCT(1, 2, 5);
    _tile_loadd(3, left + kRowBytes, p.left_stride);
    ATTEND_TILE_PRODUCT(0, 3, 6);
    ATTEND_TILE_PRODUCT(1, 3, 7);
    _tile_stored(0, out, p.out_stride);
    _tile_stored(1, out + kRowBytes, p.out_stride);
  }
}

#undef ATTEND_TILE_PRODUCT

template <bool kBytes, int kM>
HWY_INLINE void MultiplyRows(const TileProduct& p, int64_t row, int64_t column) {
  for (; column + 2 * kSide <= p.columns; column += 2 * kSide)
    MultiplyTiles<kBytes, kM, 2>(p, row, column);
  if (column < p.columns) MultiplyTiles<kBytes, kM, 1>(p, row, column);
}

template <bool kBytes>
HWY_INLINE void MultiplyPart(const TileProduct& p) {
  int64_t column = 0;
  if (p.steps == 2) {
    for (; column + 2 * kSide <= p.columns; column += 2 * kSide)
      MultiplyTwoSteps<kBytes>(p, column);
  }
  int64_t row = 0;
  for (; row + 2 * kSide <= p.rows; row += 2 * kSide) MultiplyRows<kBytes, 2>(p, row, column);
  if (row < p.rows) MultiplyRows<kBytes, 1>(p, row, column);
}

// Steps of a part: 64 rows and 32 columns of it fit in the first-level cache.
constexpr int64_t kPartSteps = 8;

template <bool kBytes>
HWY_INLINE void Multiply(const TileProduct& p) {
  if (p.ahead != nullptr) p.ahead->divide((p.rows + kSide) / (2 * kSide) * p.steps * kFetches);
  int64_t step = 0;
  do {
    TileProduct part = p;
    part.steps = std::min(kPartSteps, p.steps - step);
    part.left += step * kRowBytes;
    part.right += step * kSide * p.right_stride;
    part.accumulate = p.accumulate || step > 0;
    MultiplyPart<kBytes>(part);
    step += kPartSteps;
  } while (step < p.steps);
}

}  // namespace

void multiply_bfloat16_tiles(const TileProduct& product) { Multiply<false>(product); }

void multiply_byte_tiles(const TileProduct& product) { Multiply<true>(product); }

}  // namespace attend::kernels
HWY_POP_ATTRIBUTES

#else

namespace attend::kernels {

bool has_tiles() { return false; }
void take_tiles() {}
void release_tiles() {}
void multiply_bfloat16_tiles(const TileProduct&) {}
void multiply_byte_tiles(const TileProduct&) {}

}  // namespace attend::kernels

#endif
