#include "attend/kernels/row_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/row_products.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>
#include <vector>

#include "attend/kernels/cpu/matmul-inl.h"
#include "attend/kernels/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// 16 sums of 32 registers, or 8 of 16.
constexpr int64_t kBlockColumns = 4;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kBlockRows = 4;
#else
constexpr int kBlockRows = 2;
#endif
// Rows of `a` read again for each block of columns; for common depths they stay in L1.
constexpr int64_t kCachedRows = 32;

// kR rows with four columns; only the first `columns` exist. Both run along the depth.
template <int kR>
HWY_INLINE void DotBlock(const RowProducts& p, int64_t row, int64_t column, int64_t columns) {
  const Tag<float> d;
  const float* HWY_RESTRICT left = p.a + row * p.a_stride;
  const float* right[kBlockColumns];
  for (int64_t c = 0; c < kBlockColumns; ++c)
    right[c] = p.b + (column + std::min(c, columns - 1)) * p.b_stride;
  Vec<float> sum[kR][kBlockColumns];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < kBlockColumns; ++c) sum[r][c] = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + kLanes<float> <= p.depth; k += kLanes<float>) {
    Vec<float> b[kBlockColumns];
#pragma GCC unroll 16
    for (int c = 0; c < kBlockColumns; ++c) b[c] = hn::LoadU(d, right[c] + k);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const auto a = hn::LoadU(d, left + r * p.a_stride + k);
#pragma GCC unroll 16
      for (int c = 0; c < kBlockColumns; ++c) sum[r][c] = hn::MulAdd(a, b[c], sum[r][c]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    float total[kBlockColumns];
    SumFour(sum[r], total);
    float* to = p.out + (row + r) * p.out_stride + column;
    for (int64_t c = 0; c < columns; ++c) {
      float rest = 0;
      for (int64_t j = k; j < p.depth; ++j) rest += left[r * p.a_stride + j] * right[c][j];
      to[c] = total[c] + rest + (p.start == nullptr ? 0 : p.start[column + c]);
    }
  }
}

// All columns with the rows [first, end).
HWY_INLINE void DotRows(const RowProducts& p, int64_t first, int64_t end) {
  for (int64_t column = 0; column < p.columns; column += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, p.columns - column);
    int64_t row = first;
    for (; row + kBlockRows <= end; row += kBlockRows)
      DotBlock<kBlockRows>(p, row, column, columns);
    for (; row < end; ++row) DotBlock<1>(p, row, column, columns);
  }
}

// The columns that fill no vector, padded with zeros to one vector.
HWY_INLINE void LastColumns(const RowProducts& p, int64_t first) {
  const int64_t columns = p.columns - first, lanes = kLanes<float>;
  if (columns == 0) return;
  std::vector<float> b(static_cast<size_t>(p.depth * lanes)),
      out(static_cast<size_t>(p.rows * lanes));
  for (int64_t k = 0; k < p.depth; ++k)
    std::copy_n(p.b + k * p.b_stride + first, columns, b.data() + k * lanes);
  MultiplyPanel<1, float>(p.rows, {p.a, p.a_stride, 1}, {b.data(), lanes}, p.depth,
                          /*accumulate=*/false, {out.data(), lanes});
  for (int64_t row = 0; row < p.rows; ++row)
    std::copy_n(out.data() + row * lanes, columns, p.out + row * p.out_stride + first);
}

void AllProducts(const RowProducts& p) {
  if (p.b_by_columns) {
    for (int64_t row = 0; row < p.rows; row += kCachedRows)
      DotRows(p, row, std::min(p.rows, row + kCachedRows));
    return;
  }
  const int64_t whole = p.columns / kLanes<float> * kLanes<float>;
  Multiply<float>(p.rows, whole, p.depth, {p.a, p.a_stride, 1}, {p.b, p.b_stride},
                  /*accumulate=*/false, {p.out, p.out_stride});
  LastColumns(p, whole);
  for (int64_t row = 0; row < p.rows && p.start != nullptr; ++row)
    for (int64_t c = 0; c < p.columns; ++c) p.out[row * p.out_stride + c] += p.start[c];
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(AllProducts);

void row_products(const RowProducts& problem) { HWY_DYNAMIC_DISPATCH(AllProducts)(problem); }

}  // namespace attend::kernels
#endif
