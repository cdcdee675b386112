#if defined(ATTEND_KERNELS_PACKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_PACKED_INL_H_
#undef ATTEND_KERNELS_PACKED_INL_H_
#else
#define ATTEND_KERNELS_PACKED_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/bytes-inl.h"
#include "attend/kernels/cpu/matmul-inl.h"
#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/rows_ahead-inl.h"
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

// Depth of a part: it stays in L2 together with the next one.
inline constexpr int64_t kPartDepth = 1024;

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
          __builtin_prefetch(right + v * lanes + kFetchedAhead * PackedMatrix::panel, /*rw=*/0,
                             /*locality=*/2);
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
                 const Rows<float>& out, MemoryAhead* ahead) const {
    multiply_bytes_({.rows = rows,
                     .depth = depth_,
                     .a = bytes_ + first * depth_,
                     .words = matrix.words(column),
                     .a_scales = scales_ + first,
                     .scales = matrix.scales(column),
                     .offsets = matrix.offsets(column),
                     .out = out.data,
                     .out_stride = out.stride,
                     .ahead = ahead});
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

// out[r][c] += sum_k a_rk w_kc for the columns of MultiplyPanel.
template <class W>
HWY_NOINLINE void MultiplyPart(int64_t rows, const Broadcast<float>& a, const Rows<const W>& b,
                               int64_t depth, const Rows<float>& out, MemoryAhead& ahead) {
  for (int64_t r = 0; r < rows; r += kRowsPerStep) {
    const Broadcast<float> left{a.data + r * a.row, a.row, a.step};
    const Rows<float> to{out.data + r * out.stride, out.stride};
    const BytesAhead fetched{ahead.take(depth), ahead.pace()};
    if (r + kRowsPerStep <= rows)
      MultiplyStep<kRowsPerStep, kVectorsPerStep>(left, b, depth, true, to, fetched);
    else
      MultiplyRest<kRowsPerStep - 1, kVectorsPerStep>(rows - r, left, b, depth, true, to, fetched);
  }
}

// As AddPanel, for float or bfloat16 weights. Results do not depend on the parts.
template <class W>
HWY_INLINE void AddNumbers(const W* weights, int64_t depth, const float* a, int64_t a_stride,
                           int64_t rows, const Rows<float>& out, MemoryAhead* ahead) {
  static_assert(PackedMatrix::panel % kPanel<float> == 0);
  if (rows <= kRowsPerStep)
    return AddSomeRows<kRowsPerStep>(rows, weights, depth, a, a_stride, out);
  constexpr int64_t panel = PackedMatrix::panel;
  MemoryAhead nothing(reinterpret_cast<const char*>(weights), 0);
  if (ahead == nullptr) ahead = &nothing;
  ahead->divide((rows + kRowsPerStep - 1) / kRowsPerStep * (panel / kPanel<float>)*depth);
  for (int64_t k = 0; k < depth; k += kPartDepth) {
    const int64_t part = std::min(kPartDepth, depth - k);
    for (int64_t c = 0; c < panel; c += kPanel<float>)
      MultiplyPart<W>(rows, {a + k, a_stride, 1}, {weights + k * panel + c, panel}, part,
                      {out.data + c, out.stride}, *ahead);
  }
}

// out[r][c] += sum_k a_rk w_kc for `rows` rows from `first` on, at most kPackedRows, and the panel
// of columns from `column` on. Meanwhile fetches `ahead`, if given.
HWY_INLINE void AddPanel(const PackedMatrix& matrix, int64_t column, const LeftRows& left,
                         int64_t first, int64_t rows, const Rows<float>& out,
                         MemoryAhead* ahead = nullptr) {
  const float* a = left.floats(first);
  switch (matrix.type()) {
    case WeightType::float32:
      return AddNumbers(matrix.weights(column), matrix.depth(), a, left.stride(), rows, out, ahead);
    case WeightType::bfloat16:
      return AddNumbers(matrix.bfloat16_weights(column), matrix.depth(), a, left.stride(), rows,
                        out, ahead);
    case WeightType::int8:
      return left.add_bytes(matrix, column, first, rows, out, ahead);
  }
}

// Bytes of a shared part of a matrix: it takes some microseconds, ten times as long as handing it
// over.
inline constexpr int64_t kSharedBytes = int64_t{1} << 15;

// Columns of a part, whole panels.
inline int64_t SharedColumns(const PackedMatrix& matrix) {
  return PackedMatrix::panel *
         std::max<int64_t>(1, kSharedBytes / std::max<int64_t>(1, matrix.panel_bytes()));
}

// Calls compute(first, end, next) with ranges of columns, whole panels, distributed over threads.
// `next`: the first column of the range that the thread takes afterwards; it may lie outside the
// columns. Results do not depend on the thread.
template <class Compute>
void ShareColumns(const PackedMatrix& matrix, const Compute& compute) {
  const int64_t together = SharedColumns(matrix);
  share_parts((matrix.columns() + together - 1) / together, [&](int64_t part, int64_t next) {
    const int64_t first = part * together;
    compute(first, std::min(first + together, matrix.padded_columns()), next * together);
  });
}

HWY_INLINE bool UsesTiles(const PackedMatrix& matrix, int64_t rows) {
  const bool bytes = matrix.type() == WeightType::int8 && rows >= kTileSide;
  return (bytes || matrix.rounded_rows() != nullptr) && has_tiles();
}

// Part i of n of the panel of columns from `column` on, or no bytes if it lies outside the columns.
// Always an address that is mapped: the processor would search for others at each fetch.
HWY_INLINE MemoryAhead PanelAhead(const PackedMatrix& matrix, int64_t column, int64_t i,
                                  int64_t n) {
  if (column < 0 || column >= matrix.columns()) return {matrix.panel_memory(0), 0};
  const int64_t bytes = (matrix.panel_bytes() + n - 1) / n;
  return {matrix.panel_memory(column) + i * bytes, bytes};
}

// Calls compute(row, rows, column, ahead) for all blocks of at most kPackedRows rows and a panel of
// columns. Panels read rows again while they are in L2. `ahead` is a part of the next panel.
template <class Compute>
void ShareBlocks(const PackedMatrix& matrix, int64_t rows, const Compute& compute) {
  const TileThread multiplies(UsesTiles(matrix, rows));  // parts of this thread find them taken
  constexpr int64_t cached_bytes = int64_t{3} << 18, panel = PackedMatrix::panel;
  const int64_t row_bytes = std::max<int64_t>(1, matrix.panel_bytes() / panel);
  const int64_t blocks = std::clamp<int64_t>(cached_bytes / (row_bytes * kPackedRows), 1, 4);
  for (int64_t first = 0; first < rows; first += blocks * kPackedRows) {
    const int64_t count = std::min(blocks, (rows - first + kPackedRows - 1) / kPackedRows);
    ShareColumns(matrix, [&](int64_t begin, int64_t end, int64_t next) HWY_ATTR {
      const TileThread multiplies(UsesTiles(matrix, rows));
      for (int64_t column = begin; column < end; column += panel) {
        const int64_t following = column + panel < end ? column + panel : next;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t row = first + i * kPackedRows;
          MemoryAhead ahead = PanelAhead(matrix, following, i, count);
          compute(row, std::min(kPackedRows, rows - row), column, ahead);
        }
      }
    });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
