#pragma once

#include <algorithm>
#include <cstdint>

#include "attend/kernels/storage.h"

// Conversion of 16-bit rows to float and back. bf16 uses vectors: loops compiled for any processor
// would take a tenth of the time of attention over 512 keys.

namespace attend::kernels {

// Rows that begin `stride` numbers apart.
template <class S>
struct RowBlock {
  S* data;
  int64_t stride;
};

void widen_block(const RowBlock<const BFloat16>& from, int64_t rows, int64_t columns,
                 const RowBlock<float>& to);
// Rounds as narrow<BFloat16>.
void narrow_block(const RowBlock<const float>& from, int64_t rows, int64_t columns,
                  const RowBlock<BFloat16>& to);

// The same for float16, number by number.
inline void widen_block(const RowBlock<const Float16>& from, int64_t rows, int64_t columns,
                        const RowBlock<float>& to) {
  for (int64_t r = 0; r < rows; ++r) {
    const Float16* const row = from.data + r * from.stride;
    std::transform(row, row + columns, to.data + r * to.stride, [](Float16 x) { return widen(x); });
  }
}
inline void narrow_block(const RowBlock<const float>& from, int64_t rows, int64_t columns,
                         const RowBlock<Float16>& to) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = from.data + r * from.stride;
    std::transform(row, row + columns, to.data + r * to.stride, narrow<Float16>);
  }
}

// Whether no number is infinite or NaN.
bool is_finite_block(const RowBlock<const BFloat16>& block, int64_t rows, int64_t columns);

}  // namespace attend::kernels
