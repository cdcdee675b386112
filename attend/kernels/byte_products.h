#pragma once

#include <cstdint>

// Products of bytes by AVX512-VNNI, and by AMX if there is, which Highway does not target; detected
// at run time.

namespace attend::kernels {

class MemoryAhead;

// out_rc += a_scale_r scale_c (sum_k a_rk w_kc - offset_c) for 32 columns. Sums below 2^31 are
// exact. The bits of a row do not depend on other rows.
struct ByteProduct {
  int64_t rows = 0;
  int64_t depth = 0;                 // a multiple of 4
  const uint8_t* a = nullptr;        // row r at a + r * depth
  const int32_t* words = nullptr;    // [depth / 4][32]: four signed bytes w_kc per word
  const float* a_scales = nullptr;   // [rows]
  const float* scales = nullptr;     // [32]
  const int32_t* offsets = nullptr;  // [32]
  float* out = nullptr;              // row r at out + r * out_stride
  int64_t out_stride = 0;
  MemoryAhead* ahead = nullptr;  // fetched meanwhile; optional
};

using ByteKernel = void (*)(const ByteProduct& product);

// Returns null if the processor lacks AVX512-VNNI.
ByteKernel byte_kernel();

}  // namespace attend::kernels
