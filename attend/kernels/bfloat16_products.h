#pragma once

#include <cstdint>

// Products of bf16 numbers with sums in fp32 by AMX or AVX512-BF16, for which Highway has no
// target. The processor, and the system, which gives AMX's registers on request, are asked at run
// time.

namespace attend::kernels {

// out_rc (+)= sum_k left_rk right_kc. Numbers below 2^-126 count as 0, in operands and sums. The
// other rows and columns change no bit of a sum.
struct BFloat16Product {
  int64_t rows = 0;     // a multiple of 16
  int64_t columns = 0;  // a multiple of 16
  int64_t depth = 0;    // a multiple of 32
  // left_rk at left[r * left_stride + k].
  const uint16_t* left = nullptr;
  int64_t left_stride = 0;
  // right_kc is the lower half of right[k / 2 * right_stride + c] for even k, the upper half for
  // odd k.
  const uint32_t* right = nullptr;
  int64_t right_stride = 0;
  bool accumulate = false;
  float scale = 1;       // of all that out has in the end
  float* out = nullptr;  // out_rc at out[r * out_stride + c]
  int64_t out_stride = 0;
};

struct BFloat16Kernels {
  const char* name;
  // Before the first product of a thread and after the last: they take and give back its tiles.
  void (*begin)();
  void (*end)();
  void (*multiply)(const BFloat16Product& product);
};

// AMX, where the system does not refuse it, which the first call asks for; AVX512-BF16 where it is
// faster than products of floats. Null where the processor has neither, and while Highway is held
// to a target without vectors of 512 bits.
const BFloat16Kernels* bfloat16_kernels();

// For tests and benchmarks: with false there are none. Not to be called while kernels run.
void allow_bfloat16_kernels(bool allowed);

// While it lives, the thread may multiply; null takes no tiles.
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
