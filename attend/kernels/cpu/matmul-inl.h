#if defined(ATTEND_KERNELS_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_MATMUL_INL_H_
#undef ATTEND_KERNELS_MATMUL_INL_H_
#else
#define ATTEND_KERNELS_MATMUL_INL_H_
#endif

#include "attend/kernels/cpu/rows_ahead-inl.h"
#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Accumulators are kRowsPerStep x kVectorsPerStep: 16 of 32 registers, or 12 of 16. They hide the
// latency of a fused multiply-add (4 cycles x 2 ports) and leave registers for the operands.
inline constexpr int kVectorsPerStep = 2;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
inline constexpr int kRowsPerStep = 8;
#else
inline constexpr int kRowsPerStep = 6;
#endif

// Columns per pass of the micro-kernel: the natural width of a panel.
template <class T>
inline constexpr int64_t kPanel = kVectorsPerStep* kLanes<T>;

// Element (r, k) at data[r * row + k * step]. Numbers are read one at a time and broadcast; any
// layout and alignment is possible.
template <class T>
struct Broadcast {
  const T* data;
  int64_t row;
  int64_t step;
};

// Rows of vectors: element (k, c) at data[k * stride + c].
template <class T>
struct Rows {
  T* data;
  int64_t stride;
};

// Memory that a step fetches: none, or `pace` bytes per index of the depth.
struct NothingAhead {
  HWY_INLINE void fetch(int64_t /*k*/) const {}
};
struct BytesAhead {
  const char* first;
  int64_t pace;

  HWY_INLINE void fetch(int64_t k) const {
    __builtin_prefetch(first + k * pace, /*rw=*/0, /*locality=*/2);
  }
};

// out[r][c] (+)= sum_k a(r, k) b[k][c] for kR rows and kV vectors of columns. B is T, or a type
// that Load() widens to T.
template <int kR, int kV, class T, class B, class Ahead = NothingAhead>
HWY_INLINE void MultiplyStep(const Broadcast<T>& a, const Rows<const B>& b, int64_t depth,
                             bool accumulate, const Rows<T>& out, const Ahead& ahead = {}) {
  const Tag<T> d;
  const T* HWY_RESTRICT left = a.data;
  const B* HWY_RESTRICT right = b.data;
  T* HWY_RESTRICT to = out.data;
  const int64_t row = a.row, step = a.step, right_stride = b.stride, to_stride = out.stride;
  Vec<T> sum[kR][kV];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) {
      sum[r][v] = accumulate ? hn::LoadU(d, to + r * to_stride + v * kLanes<T>) : hn::Zero(d);
    }
  }
  // Unrolled because the hardware threads of a core share its dispatch slots. Sanitizer builds do
  // not unroll: their checks would take minutes to compile.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#pragma GCC unroll 4
#endif
  for (int64_t k = 0; k < depth; ++k) {
    ahead.fetch(k);
    Vec<T> columns[kV];
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) columns[v] = Load(right + k * right_stride + v * kLanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const auto x = hn::Set(d, left[r * row + k * step]);
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) sum[r][v] = hn::MulAdd(x, columns[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) hn::StoreU(sum[r][v], d, to + r * to_stride + v * kLanes<T>);
  }
}

// Rows that do not fill a step: rows < kR.
template <int kR, int kV, class T, class B, class Ahead = NothingAhead>
HWY_INLINE void MultiplyRest(int64_t rows, const Broadcast<T>& a, const Rows<const B>& b,
                             int64_t depth, bool accumulate, const Rows<T>& out,
                             const Ahead& ahead = {}) {
  if constexpr (kR > 0) {
    if (rows == kR) return MultiplyStep<kR, kV>(a, b, depth, accumulate, out, ahead);
    MultiplyRest<kR - 1, kV>(rows, a, b, depth, accumulate, out, ahead);
  }
}

template <int kV, class T, class B = T>
HWY_NOINLINE void MultiplyPanel(int64_t rows, Broadcast<T> a, Rows<const B> b, int64_t depth,
                                bool accumulate, Rows<T> out, RowsAhead* ahead = nullptr) {
  int64_t r = 0;
  for (; r + kRowsPerStep <= rows; r += kRowsPerStep) {
    if (ahead != nullptr) ahead->fetch_some();
    MultiplyStep<kRowsPerStep, kV>(a, b, depth, accumulate, out);
    a.data += kRowsPerStep * a.row;
    out.data += kRowsPerStep * out.stride;
  }
  MultiplyRest<kRowsPerStep - 1, kV>(rows - r, a, b, depth, accumulate, out);
}

// Number of fetches during a product of `rows` x `columns`.
template <class T>
constexpr int64_t ProductSteps(int64_t rows, int64_t columns) {
  return rows / kRowsPerStep * ((columns + kPanel<T> - 1) / kPanel<T>);
}

// out[r][c] (+)= sum_k a(r, k) b[k][c] for `rows` x `columns`; columns are a multiple of the lanes.
// Meanwhile fetches the rows of `ahead`.
template <class T>
HWY_INLINE void Multiply(int64_t rows, int64_t columns, int64_t depth, const Broadcast<T>& a,
                         const Rows<const T>& b, bool accumulate, const Rows<T>& out,
                         RowsAhead* ahead = nullptr) {
  int64_t c = 0;
  for (; c + kPanel<T> <= columns; c += kPanel<T>) {
    MultiplyPanel<kVectorsPerStep, T>(rows, a, {b.data + c, b.stride}, depth, accumulate,
                                      {out.data + c, out.stride}, ahead);
  }
  for (; c < columns; c += kLanes<T>) {
    MultiplyPanel<1, T>(rows, a, {b.data + c, b.stride}, depth, accumulate,
                        {out.data + c, out.stride}, ahead);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
