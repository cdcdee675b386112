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

// 24 sums of 32 registers, or 8 of 16.
constexpr int64_t kBlockColumns = 4;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kBlockRows = 6;
#else
constexpr int kBlockRows = 2;
#endif
// Rows of `a` read again for each block of columns; for common depths they stay in L2.
constexpr int64_t kCachedRows = 16 * kBlockRows;
// Distance in blocks of columns: few rows take less time than their columns take from memory.
constexpr int64_t kBlocksAhead = 4;

// The first `count` numbers of a vector, then zeros.
HWY_INLINE Vec<float> LoadSome(const float* from, int64_t count) {
  HWY_ALIGN float numbers[kLanes<float>] = {};
  std::copy_n(from, count, numbers);
  return hn::Load(Tag<float>(), numbers);
}

// sum[r][c] += the products of one vector of the depth, from `k` on; load(from) reads a vector.
template <int kR, class LoadVector>
HWY_INLINE void AddProducts(const float* left, int64_t stride, const float* const* right, int64_t k,
                            const LoadVector& load, Vec<float> (&sum)[kR][kBlockColumns]) {
  Vec<float> b[kBlockColumns];
#pragma GCC unroll 16
  for (int c = 0; c < kBlockColumns; ++c) b[c] = load(right[c] + k);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    const auto a = load(left + r * stride + k);
#pragma GCC unroll 16
    for (int c = 0; c < kBlockColumns; ++c) sum[r][c] = hn::MulAdd(a, b[c], sum[r][c]);
  }
}

HWY_INLINE void AddStart(const float* start, int64_t columns, float* to) {
  for (int64_t c = 0; start != nullptr && c < columns; ++c) to[c] += start[c];
}

// kR rows with four columns; only the first `columns` exist. Both run along the depth. Meanwhile
// fetches the columns that are `ahead` numbers later, unless that is 0.
template <int kR>
HWY_INLINE void DotBlock(const RowProducts& p, int64_t row, int64_t column, int64_t columns,
                         int64_t ahead) {
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
    for (int c = 0; ahead != 0 && c < kBlockColumns; ++c)
      __builtin_prefetch(right[c] + ahead + k, /*rw=*/0, /*locality=*/2);
    AddProducts<kR>(
        left, p.a_stride, right, k, [&](const float* x) HWY_ATTR { return hn::LoadU(d, x); }, sum);
  }
  if (const int64_t rest = p.depth - k; rest > 0)
    AddProducts<kR>(
        left, p.a_stride, right, k, [&](const float* x) HWY_ATTR { return LoadSome(x, rest); },
        sum);
  const float* const start = p.start == nullptr ? nullptr : p.start + column;
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    float* const to = p.out + (row + r) * p.out_stride + column;
    if (columns == kBlockColumns) {
      SumFour(sum[r], to);
      AddStart(start, kBlockColumns, to);
    } else {
      float total[kBlockColumns];
      SumFour(sum[r], total);
      AddStart(start, columns, total);
      std::copy_n(total, columns, to);
    }
  }
}

// The same for `rows` rows, at most kR.
template <int kR>
HWY_INLINE void DotSomeRows(int64_t rows, const RowProducts& p, int64_t row, int64_t column,
                            int64_t columns, int64_t ahead) {
  if constexpr (kR > 0) {
    if (rows == kR) return DotBlock<kR>(p, row, column, columns, ahead);
    DotSomeRows<kR - 1>(rows, p, row, column, columns, ahead);
  }
}

// All columns with the rows [first, end).
HWY_INLINE void DotRows(const RowProducts& p, int64_t first, int64_t end) {
  for (int64_t column = 0; column < p.columns; column += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, p.columns - column);
    const bool fetches = column + (kBlocksAhead + 1) * kBlockColumns <= p.columns;
    int64_t ahead = fetches ? kBlocksAhead * kBlockColumns * p.b_stride : 0;
    int64_t row = first;
    for (; row + kBlockRows <= end; row += kBlockRows) {
      DotBlock<kBlockRows>(p, row, column, columns, ahead);
      ahead = 0;
    }
    DotSomeRows<kBlockRows - 1>(end - row, p, row, column, columns, ahead);
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
