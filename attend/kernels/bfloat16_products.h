#pragma once

#include <cstdint>

// Products of bf16 numbers with sums in fp32, by AMX or AVX512-BF16, which Highway does not target.
// Support is detected at run time; the system must also grant the AMX registers on request.

namespace attend::kernels {

class MemoryAhead;

// out_rc (+)= sum_k left_rk right_kc. Magnitudes below 2^-126 count as 0, in operands and sums. The
// bits of a sum do not depend on other rows and columns.
struct BFloat16Product {
  int64_t rows = 0;     // a multiple of 16
  int64_t columns = 0;  // a multiple of 16
  int64_t depth = 0;    // a multiple of 32
  // left_rk at left[r * left_stride + k].
  const uint16_t* left = nullptr;
  int64_t left_stride = 0;
  // right_kc is in right[k / 2 * right_stride + c]: the lower half for even k, the upper half for
  // odd k.
  const uint32_t* right = nullptr;
  int64_t right_stride = 0;
  bool accumulate = false;
  float scale = 1;       // factor of the final value of out, including what it held before
  float* out = nullptr;  // out_rc at out[r * out_stride + c]
  int64_t out_stride = 0;
  MemoryAhead* ahead = nullptr;  // fetched meanwhile; optional
};

struct BFloat16Kernels {
  const char* name;
  // Called before the first and after the last product of a thread: acquire and release its tiles.
  void (*begin)();
  void (*end)();
  void (*multiply)(const BFloat16Product& product);
};

// Returns AMX kernels if the system permits AMX, which the first call requests; otherwise
// AVX512-BF16 kernels if they are faster than products of floats. Null if the processor has
// neither, and while Highway is limited to a target without 512-bit vectors.
const BFloat16Kernels* bfloat16_kernels();

// For tests and benchmarks: false disables the kernels. Do not call while kernels run.
void allow_bfloat16_kernels(bool allowed);

// Permits products on this thread during its lifetime; does nothing for null.
class BFloat16Thread {
 public:
  explicit BFloat16Thread(const BFloat16Kernels* kernels) : kernels_(kernels) {
    if (kernels_ != nullptr) kernels_->begin();
  }
  ~BFloat16Thread() {
    if (kernels_ != nullptr) kernels_->end();
  }
  BFloat16Thread(const BFloat16Thread&) = delete;
  BFloat16Thread& operator=(const BFloat16Thread&) = delete;

 private:
  const BFloat16Kernels* kernels_;
};

}  // namespace attend::kernels
