#pragma once

#include <cstdint>

// Products of bytes by AVX512-VNNI, for which Highway has no target: the processor is asked at run
// time.

namespace attend::kernels {

// out_rc += a_scale_r scale_c (sum_k a_rk w_kc - offset_c) for 32 columns. Sums are exact as long
// as they are below 2^31; the other rows change no bit of a result.
struct ByteProduct {
  int64_t rows = 0;
  int64_t depth = 0;                 // a multiple of 4
  const uint8_t* a = nullptr;        // row r at a + r * depth
  const int32_t* words = nullptr;    // [depth / 4][32]: four bytes w_kc with a sign
  const float* a_scales = nullptr;   // [rows]
  const float* scales = nullptr;     // [32]
  const int32_t* offsets = nullptr;  // [32]
  float* out = nullptr;              // row r at out + r * out_stride
  int64_t out_stride = 0;
};

using ByteKernel = void (*)(const ByteProduct& product);

// Null where the processor has no AVX512-VNNI.
ByteKernel byte_kernel();

}  // namespace attend::kernels
