#if defined(ATTEND_KERNELS_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_PANEL_INL_H_
#undef ATTEND_KERNELS_PANEL_INL_H_
#else
#define ATTEND_KERNELS_PANEL_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// One block: to[c * to_stride + r] = from[r * from_stride + c], kSide x kSide in vectors of 128
// bits, available on every target except the scalar one.
#if HWY_TARGET != HWY_SCALAR
template <class T>
inline constexpr int64_t kSide = 16 / sizeof(T);

// Transposes four rows into four vectors. Block b of vector i, of 128 bits, holds the four numbers
// of column 4 b + i.
template <class D>
HWY_INLINE void TransposeFour(D d, const float* from, int64_t from_stride, hn::Vec<D>* to) {
  const hn::Repartition<double, D> wide;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto low_ab = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
  const auto high_ab = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
  const auto low_ce = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
  const auto high_ce = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  to[0] = hn::BitCast(d, hn::InterleaveLower(wide, low_ab, low_ce));
  to[1] = hn::BitCast(d, hn::InterleaveUpper(wide, low_ab, low_ce));
  to[2] = hn::BitCast(d, hn::InterleaveLower(wide, high_ab, high_ce));
  to[3] = hn::BitCast(d, hn::InterleaveUpper(wide, high_ab, high_ce));
}

HWY_INLINE void TransposeBlock(const float* from, int64_t from_stride, float* to,
                               int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  hn::Vec<decltype(d)> columns[4];
  TransposeFour(d, from, from_stride, columns);
#pragma GCC unroll 4
  for (int64_t c = 0; c < 4; ++c) hn::StoreU(columns[c], d, to + c * to_stride);
}

HWY_INLINE void TransposeBlock(const double* from, int64_t from_stride, double* to,
                               int64_t to_stride) {
  const hn::FixedTag<double, 2> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_stride);
}

// The same for wide blocks of floats, two or four 128-bit blocks per vector.
template <class T>
HWY_INLINE void TransposeWideBlock(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  const Tag<T> d;
  constexpr int64_t lanes = kLanes<T>;
  Vec<T> rows[lanes];
#pragma GCC unroll 4
  for (int64_t r = 0; r < lanes; r += 4)
    TransposeFour(d, from + r * from_stride, from_stride, rows + r);
#pragma GCC unroll 4
  for (int64_t c = 0; c < 4; ++c) {
    if constexpr (lanes == 8) {
      hn::StoreU(hn::ConcatLowerLower(d, rows[c + 4], rows[c]), d, to + c * to_stride);
      hn::StoreU(hn::ConcatUpperUpper(d, rows[c + 4], rows[c]), d, to + (c + 4) * to_stride);
    } else {
      // Blocks 0 and 2 of both, then 1 and 3.
      const auto even_ab = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(rows[c + 4]), rows[c]);
      const auto odd_ab = hn::OddEvenBlocks(rows[c + 4], hn::SwapAdjacentBlocks(rows[c]));
      const auto even_ce = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(rows[c + 12]), rows[c + 8]);
      const auto odd_ce = hn::OddEvenBlocks(rows[c + 12], hn::SwapAdjacentBlocks(rows[c + 8]));
      hn::StoreU(hn::ConcatLowerLower(d, even_ce, even_ab), d, to + c * to_stride);
      hn::StoreU(hn::ConcatLowerLower(d, odd_ce, odd_ab), d, to + (c + 4) * to_stride);
      hn::StoreU(hn::ConcatUpperUpper(d, even_ce, even_ab), d, to + (c + 8) * to_stride);
      hn::StoreU(hn::ConcatUpperUpper(d, odd_ce, odd_ab), d, to + (c + 12) * to_stride);
    }
  }
}
#else
template <class T>
inline constexpr int64_t kSide = 1;

template <class T>
void TransposeBlock(const T* from, int64_t, T* to, int64_t) {
  *to = *from;
}
#endif

// to[c * to_stride + r] = from[r * from_stride + c] for rows x columns, by blocks of kSide.
template <class T>
HWY_INLINE void TransposeBlocks(const T* from, int64_t from_stride, int64_t rows, int64_t columns,
                                T* to, int64_t to_stride) {
  constexpr int64_t side = kSide<T>;
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (int64_t c = 0; c < whole_columns; c += side) {
    for (int64_t r = 0; r < whole_rows; r += side) {
      TransposeBlock(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    const int64_t first = c < whole_columns ? whole_rows : 0;
    for (int64_t r = first; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

// The same with blocks as wide as vectors, if any; small blocks for the remainder.
template <class T>
HWY_INLINE void Transpose(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                          int64_t to_stride) {
  constexpr int64_t side = kLanes<T>, small = kSide<T>;
  if constexpr (std::is_same_v<T, float> && side > small) {
    const int64_t wide_rows = rows / side * side, wide_columns = columns / side * side;
    for (int64_t c = 0; c < wide_columns; c += side) {
      for (int64_t r = 0; r < wide_rows; r += side)
        TransposeWideBlock(from + r * from_stride + c, from_stride, to + c * to_stride + r,
                           to_stride);
    }
    if (wide_rows < rows)
      TransposeBlocks(from + wide_rows * from_stride, from_stride, rows - wide_rows, wide_columns,
                      to + wide_rows, to_stride);
    if (wide_columns < columns)
      TransposeBlocks(from + wide_columns, from_stride, rows, columns - wide_columns,
                      to + wide_columns * to_stride, to_stride);
  } else {
    TransposeBlocks(from, from_stride, rows, columns, to, to_stride);
  }
}

// Transposes rows of a matrix to columns of a panel [columns][width]; columns after `rows` are 0.
template <class T>
void LoadPanel(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* panel,
               int64_t width) {
  Transpose(from, from_stride, rows, columns, panel, width);
  if (rows == width) return;
  for (int64_t c = 0; c < columns; ++c)
    std::fill(panel + c * width + rows, panel + (c + 1) * width, T(0));
}

// Copies rows to [rows][width], padded with 0 to whole vectors and to `padded_rows` rows.
template <class T>
void LoadRows(const T* from, int64_t from_stride, int64_t rows, int64_t columns,
              int64_t padded_rows, T* to, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * from_stride, columns, to + r * width);
    std::fill(to + r * width + columns, to + (r + 1) * width, T(0));
  }
  std::fill(to + rows * width, to + padded_rows * width, T(0));
}

// Rows with whole vectors of columns for a product: read in place if possible, otherwise copied to
// `to`.
template <class T>
struct WholeRows {
  const T* data;
  int64_t stride;
};

template <class T>
WholeRows<T> FindWholeRows(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                           int64_t width) {
  if (columns == width) return {from, from_stride};
  LoadRows(from, from_stride, rows, columns, rows, to, width);
  return {to, width};
}

template <class T>
HWY_INLINE void ScaleInPlace(T* data, int64_t count, T factor) {
  const Tag<T> d;
  const auto scale = Set<T>(factor);
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    hn::Store(hn::Mul(hn::Load(d, data + i), scale), d, data + i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
