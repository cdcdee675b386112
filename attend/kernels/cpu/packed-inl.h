#if defined(ATTEND_KERNELS_PACKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_PACKED_INL_H_
#undef ATTEND_KERNELS_PACKED_INL_H_
#else
#define ATTEND_KERNELS_PACKED_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>

#include "attend/kernels/cpu/bytes-inl.h"
#include "attend/kernels/cpu/matmul-inl.h"
#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/tile_products.h"
#include "attend/kernels/helpers.h"
#include "attend/kernels/packed_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Rows per block: their results for one panel fit in L1 together with the panel.
inline constexpr int64_t kPackedRows = 64;

// Prefetch distance of a product of few rows. It is limited by loading the weights, and the
// hardware prefetches only to the end of a page.
inline constexpr int64_t kFetchedAhead = 64;  // depth steps, a line or two each

// Vectors of columns per step for few rows. One or two rows leave registers for more vectors than
// in MultiplyPanel. They read the lines of a panel one after another, with more sums in flight.
template <int kR>
inline constexpr int kVectorsOfFewRows =
    kR <= 2 && 2 * kPanel<float> <= PackedMatrix::panel ? 2 * kVectorsPerStep : kVectorsPerStep;

// Multiplies kR rows with one panel, in the order of MultiplyPanel.
template <int kR, class W>
HWY_NOINLINE void AddFewRows(const W* weights, int64_t depth, const float* a, int64_t a_stride,
                             const Rows<float>& out) {
  const Tag<float> d;
  constexpr int64_t lanes = kLanes<float>;
  constexpr int kV = kVectorsOfFewRows<kR>;
  for (int64_t c = 0; c < PackedMatrix::panel; c += kV * lanes) {
    Vec<float> sum[kR][kV];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v)
        sum[r][v] = hn::LoadU(d, out.data + r * out.stride + c + v * lanes);
    }
    const W* HWY_RESTRICT right = weights + c;
    for (int64_t k = 0; k < depth; ++k, right += PackedMatrix::panel) {
      Vec<float> columns[kV];
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) {
        columns[v] = Load(right + v * lanes);
        if (v * lanes % (64 / sizeof(W)) == 0)
          hwy::Prefetch(right + v * lanes + kFetchedAhead * PackedMatrix::panel);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        const auto x = hn::Set(d, a[r * a_stride + k]);
#pragma GCC unroll 16
        for (int v = 0; v < kV; ++v) sum[r][v] = hn::MulAdd(x, columns[v], sum[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v)
        hn::StoreU(sum[r][v], d, out.data + r * out.stride + c + v * lanes);
    }
  }
}

// The same for `rows` rows, at most kR.
template <int kR, class W>
HWY_INLINE void AddSomeRows(int64_t rows, const W* weights, int64_t depth, const float* a,
                            int64_t a_stride, const Rows<float>& out) {
  if constexpr (kR > 0) {
    if (rows == kR) return AddFewRows<kR>(weights, depth, a, a_stride, out);
    AddSomeRows<kR - 1, W>(rows, weights, depth, a, a_stride, out);
  }
}

// Left operand of a matrix: the given floats, or bytes made of them.
class LeftRows {
 public:
  LeftRows(const PackedMatrix& matrix, int64_t rows, const float* a, int64_t a_stride)
      : a_(a), a_stride_(a_stride), depth_(matrix.byte_depth()) {
    if (matrix.type() != WeightType::int8) return;
    constexpr bool wide = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL;
    if (const ByteKernel best = byte_kernel(); wide && best != nullptr) multiply_bytes_ = best;
    bytes_ = byte_arena_.take(rows * depth_);
    scales_ = arena_.take(rows);
    for (int64_t r = 0; r < rows; ++r)
      scales_[r] = RoundToBytes(a + r * a_stride, matrix.depth(), bytes_ + r * depth_);
  }

  const float* floats(int64_t row) const { return a_ + row * a_stride_; }
  int64_t stride() const { return a_stride_; }

  // As AddPanel, for a byte matrix.
  void add_bytes(const PackedMatrix& matrix, int64_t column, int64_t first, int64_t rows,
                 const Rows<float>& out) const {
    multiply_bytes_({.rows = rows,
                     .depth = depth_,
                     .a = bytes_ + first * depth_,
                     .words = matrix.words(column),
                     .a_scales = scales_ + first,
                     .scales = matrix.scales(column),
                     .offsets = matrix.offsets(column),
                     .out = out.data,
                     .out_stride = out.stride});
  }

 private:
  const float* a_;
  int64_t a_stride_, depth_;
  ByteKernel multiply_bytes_ = MultiplyBytes;
  Arena<uint8_t> byte_arena_;
  Arena<float> arena_;
  uint8_t* bytes_ = nullptr;
  float* scales_ = nullptr;
};

// As AddPanel, for float or bfloat16 weights.
template <class W>
HWY_INLINE void AddNumbers(const W* weights, int64_t depth, const float* a, int64_t a_stride,
                           int64_t rows, const Rows<float>& out) {
  static_assert(PackedMatrix::panel % kPanel<float> == 0);
  if (rows <= kRowsPerStep)
    return AddSomeRows<kRowsPerStep>(rows, weights, depth, a, a_stride, out);
  for (int64_t c = 0; c < PackedMatrix::panel; c += kPanel<float>)
    MultiplyPanel<kVectorsPerStep, float, W>(rows, {a, a_stride, 1},
                                             {weights + c, PackedMatrix::panel}, depth,
                                             /*accumulate=*/true, {out.data + c, out.stride});
}

// out[r][c] += sum_k a_rk w_kc for `rows` rows from `first` on, at most kPackedRows, and the panel
// of columns from `column` on.
HWY_INLINE void AddPanel(const PackedMatrix& matrix, int64_t column, const LeftRows& left,
                         int64_t first, int64_t rows, const Rows<float>& out) {
  const float* a = left.floats(first);
  switch (matrix.type()) {
    case WeightType::float32:
      return AddNumbers(matrix.weights(column), matrix.depth(), a, left.stride(), rows, out);
    case WeightType::bfloat16:
      return AddNumbers(matrix.bfloat16_weights(column), matrix.depth(), a, left.stride(), rows,
                        out);
    case WeightType::int8:
      return left.add_bytes(matrix, column, first, rows, out);
  }
}

// Bytes of a shared part of a matrix: it takes some microseconds, ten times as long as handing it
// over.
inline constexpr int64_t kSharedBytes = int64_t{1} << 15;

// Columns of a part, whole panels.
inline int64_t SharedColumns(const PackedMatrix& matrix) {
  const int64_t panel_bytes = PackedMatrix::panel * matrix.depth() * weight_size(matrix.type());
  return PackedMatrix::panel *
         std::max<int64_t>(1, kSharedBytes / std::max<int64_t>(1, panel_bytes));
}

// Calls compute(first, end) with ranges of columns, whole panels, distributed over threads. Results
// do not depend on the thread.
template <class Compute>
void ShareColumns(const PackedMatrix& matrix, const Compute& compute) {
  const int64_t together = SharedColumns(matrix);
  share_parts((matrix.columns() + together - 1) / together, [&](int64_t part) {
    const int64_t first = part * together;
    compute(first, std::min(first + together, matrix.padded_columns()));
  });
}

HWY_INLINE bool UsesTiles(const PackedMatrix& matrix, int64_t rows) {
  const bool bytes = matrix.type() == WeightType::int8 && rows >= kTileSide;
  return (bytes || matrix.rounded_rows() != nullptr) && has_tiles();
}

// Calls compute(row, rows, column) for all blocks of at most kPackedRows rows and a panel of
// columns. Panels read rows again while they are in L2.
template <class Compute>
void ShareBlocks(const PackedMatrix& matrix, int64_t rows, const Compute& compute) {
  const TileThread multiplies(UsesTiles(matrix, rows));  // parts of this thread find them taken
  constexpr int64_t cached_numbers = int64_t{1} << 17;
  const int64_t depth = std::max<int64_t>(1, matrix.depth());
  const int64_t together =
      std::max<int64_t>(1, cached_numbers / (depth * kPackedRows)) * kPackedRows;
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t end = std::min(rows, first + together);
    ShareColumns(matrix, [&](int64_t begin, int64_t end_column) HWY_ATTR {
      const TileThread multiplies(UsesTiles(matrix, rows));
      for (int64_t column = begin; column < end_column; column += PackedMatrix::panel)
        for (int64_t row = first; row < end; row += kPackedRows)
          compute(row, std::min(kPackedRows, end - row), column);
    });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
