#if defined(ATTEND_KERNELS_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_PANEL_INL_H_
#undef ATTEND_KERNELS_PANEL_INL_H_
#else
#define ATTEND_KERNELS_PANEL_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// One kSide x kSide block: to[c * to_stride + r] = from[r * from_stride + c], in 128-bit vectors,
// which every target but the scalar one has.
#if HWY_TARGET != HWY_SCALAR
template <class T>
inline constexpr int64_t kSide = 16 / sizeof(T);

HWY_INLINE void TransposeBlock(const float* from, int64_t from_stride, float* to,
                               int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> wide;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto low_ab = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
  const auto high_ab = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
  const auto low_ce = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
  const auto high_ce = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low_ab, low_ce)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low_ab, low_ce)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high_ab, high_ce)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high_ab, high_ce)), d, to + 3 * to_stride);
}

HWY_INLINE void TransposeBlock(const double* from, int64_t from_stride, double* to,
                               int64_t to_stride) {
  const hn::FixedTag<double, 2> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_stride);
}
#else
template <class T>
inline constexpr int64_t kSide = 1;

template <class T>
void TransposeBlock(const T* from, int64_t, T* to, int64_t) {
  *to = *from;
}
#endif

// to[c * to_stride + r] = from[r * from_stride + c] for rows x columns.
template <class T>
HWY_INLINE void Transpose(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                          int64_t to_stride) {
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

// Rows of a matrix as columns of a panel [columns][width]; columns past `rows` are 0.
template <class T>
void LoadPanel(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* panel,
               int64_t width) {
  Transpose(from, from_stride, rows, columns, panel, width);
  if (rows == width) return;
  for (int64_t c = 0; c < columns; ++c)
    std::fill(panel + c * width + rows, panel + (c + 1) * width, T(0));
}

// Rows copied to [rows][width], padded with 0 to whole vectors and to `padded_rows` rows.
template <class T>
void LoadRows(const T* from, int64_t from_stride, int64_t rows, int64_t columns,
              int64_t padded_rows, T* to, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * from_stride, columns, to + r * width);
    std::fill(to + r * width + columns, to + (r + 1) * width, T(0));
  }
  std::fill(to + rows * width, to + padded_rows * width, T(0));
}

// Rows whose columns fill whole vectors, as a product reads them: where they are, if they do so
// there, or copied to `to`.
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
