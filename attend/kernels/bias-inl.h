#if defined(ATTEND_KERNELS_BIAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_BIAS_INL_H_
#undef ATTEND_KERNELS_BIAS_INL_H_
#else
#define ATTEND_KERNELS_BIAS_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/panel-inl.h"
#include "attend/kernels/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The biases of a problem on tiles [keys][width] of one block of rows.
template <class T>
class TileBias {
 public:
  TileBias(const Problem<T>& problem, int64_t width, Arena<T>& arena)
      : problem_(problem), scratch_(nullptr) {
    if (problem.bias.dense.data != nullptr) scratch_ = arena.take(kTileKeys * width);
  }

  // Adds to scores in units of log2.
  void add(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width, T* tile) {
    if (problem_.bias.slopes != nullptr) add_slopes(first, key, keys, width, tile);
    if (problem_.bias.dense.data != nullptr) add_dense(first, rows, key, keys, width, tile);
  }

  // tile[j][i] = ds_ij. Dense gradients are added where the caller wants them; the slope's share is
  // returned.
  T differentiate(const Gradients<T>& gradients, const Row& first, int64_t rows, int64_t key,
                  int64_t keys, int64_t width, const T* tile) {
    if (gradients.bias != nullptr)
      add_dense_gradient(gradients.bias, first, rows, key, keys, width, tile);
    return gradients.slopes == nullptr ? T(0) : slope_gradient(first, key, keys, width, tile);
  }

 private:
  const T* dense(const Row& first, int64_t key) const {
    return problem_.bias.dense.row(first.batch, first.head, first.query) + key;
  }

  // |i + offset - j| for the lanes of key j.
  HWY_INLINE Vec<T> distance(const Row& first, int64_t lane, int64_t key) const {
    const T ahead = static_cast<T>(first.query + lane + problem_.bias.slope_offset - key);
    return hn::Abs(hn::Add(hn::Iota(Tag<T>(), T(0)), Set<T>(ahead)));
  }

  // s_ij - slope |i + offset - j|
  void add_slopes(const Row& first, int64_t key, int64_t keys, int64_t width, T* tile) const {
    const Tag<T> d;
    const auto slope = Set<T>(problem_.bias.slopes[first.head] * T(kLog2E));
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        T* at = tile + j * width + lane;
        hn::Store(hn::NegMulAdd(slope, distance(first, lane, key + j), hn::Load(d, at)), d, at);
      }
    }
  }

  T slope_gradient(const Row& first, int64_t key, int64_t keys, int64_t width,
                   const T* tile) const {
    const Tag<T> d;
    auto sum = hn::Zero(d);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        sum = hn::NegMulAdd(hn::Load(d, tile + j * width + lane), distance(first, lane, key + j),
                            sum);
      }
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  void add_dense(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width,
                 T* tile) {
    const Tag<T> d;
    LoadPanel(dense(first, key), problem_.bias.dense.row_stride, rows, keys, scratch_, width);
    for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
      hn::Store(hn::MulAdd(hn::Load(d, scratch_ + i), Set<T>(T(kLog2E)), hn::Load(d, tile + i)), d,
                tile + i);
    }
  }

  void add_dense_gradient(T* gradient, const Row& first, int64_t rows, int64_t key, int64_t keys,
                          int64_t width, const T* tile) {
    T* to = gradient + (dense(first, key) - problem_.bias.dense.data);
    Transpose(tile, width, keys, rows, scratch_, keys);
    for (int64_t r = 0; r < rows; ++r) {
      T* row = to + r * problem_.bias.dense.row_stride;
      for (int64_t j = 0; j < keys; ++j) row[j] += scratch_[r * keys + j];
    }
  }

  const Problem<T>& problem_;
  T* scratch_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
