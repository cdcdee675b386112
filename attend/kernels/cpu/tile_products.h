#pragma once

#include <cstdint>

// Products by the tile registers of AMX, which Highway does not target.

namespace attend::kernels {

class MemoryAhead;

inline constexpr int64_t kTileSide = 16;       // rows of a tile, and its columns of four bytes
inline constexpr int64_t kTileStepBytes = 64;  // depth of a step: a row of a tile

// out_rc (+)= sum over words w of left_rw . right_wc, the product of two words of four bytes.
// Strides are in bytes.
struct TileProduct {
  int64_t rows = 0;     // a multiple of kTileSide
  int64_t columns = 0;  // a multiple of kTileSide
  int64_t steps = 0;    // 16 words each
  const char* left = nullptr;
  int64_t left_stride = 0;
  const char* right = nullptr;  // word w of column c at right + w * right_stride + 4 c
  int64_t right_stride = 0;
  bool accumulate = false;
  char* out = nullptr;  // four bytes per sum
  int64_t out_stride = 0;
  MemoryAhead* ahead = nullptr;  // fetched meanwhile; optional
};

// Whether the processor has AMX and the system permits it, which the first call requests.
bool has_tiles();

// Called before the first and after the last product of a thread; calls may be nested.
void take_tiles();
void release_tiles();

// A word is two bf16 numbers; sums are floats. Magnitudes below 2^-126 count as 0.
void multiply_bfloat16_tiles(const TileProduct& product);
// A word is four bytes, unsigned on the left, signed on the right; sums are int32 without overflow.
void multiply_byte_tiles(const TileProduct& product);

// Permits products on this thread during its lifetime, if `uses`.
class TileThread {
 public:
  explicit TileThread(bool uses) : uses_(uses) {
    if (uses_) take_tiles();
  }
  ~TileThread() {
    if (uses_) release_tiles();
  }
  TileThread(const TileThread&) = delete;
  TileThread& operator=(const TileThread&) = delete;

 private:
  bool uses_;
};

}  // namespace attend::kernels
