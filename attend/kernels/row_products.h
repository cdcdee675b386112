#pragma once

#include <cstdint>

namespace attend::kernels {

// y_rc = (sum_k a_rk b_kc) + s_c. Each row of y is computed by itself: its bits do not depend on
// other rows or their number. A BLAS, in contrast, chooses its order of summation by the shape.
struct RowProducts {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const float* a = nullptr;  // a_rk at a[r * a_stride + k]
  int64_t a_stride = 0;
  const float* b = nullptr;  // b_kc at b[k * b_stride + c]; by columns: at b[c * b_stride + k]
  int64_t b_stride = 0;
  bool b_by_columns = false;
  const float* start = nullptr;  // s [columns]; null: zeros
  float* out = nullptr;          // y_rc at out[r * out_stride + c]
  int64_t out_stride = 0;
};

void row_products(const RowProducts& problem);

}  // namespace attend::kernels
