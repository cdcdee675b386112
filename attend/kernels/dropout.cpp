#include "attend/kernels/dropout.h"

#include "attend/kernels/attention.h"
#include "attend/kernels/check.h"

namespace attend::kernels {

template <class T>
void dropout_mask(const Shape& s, const Dropout& dropout, T* mask) {
  check(dropout);
  const uint32_t threshold = dropout_threshold(dropout);
  const T kept = static_cast<T>(1 / (1 - dropout.probability));
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const Row at{row / s.queries / s.heads, row / s.queries % s.heads, row % s.queries};
    const uint32_t row_key = dropout_row_key(dropout, at, s.heads);
    for (int64_t j = 0; j < s.keys; ++j)
      mask[row * s.keys + j] = dropout_mix(row_key ^ dropout_key(j)) >= threshold ? kept : T(0);
  }
}

template void dropout_mask(const Shape&, const Dropout&, float*);
template void dropout_mask(const Shape&, const Dropout&, double*);

}  // namespace attend::kernels
