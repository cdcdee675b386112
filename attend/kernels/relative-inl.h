#if defined(ATTEND_KERNELS_RELATIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_RELATIVE_INL_H_
#undef ATTEND_KERNELS_RELATIVE_INL_H_
#else
#define ATTEND_KERNELS_RELATIVE_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/panel-inl.h"
#include "attend/kernels/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The relative table of a problem on tiles [keys][width]. Without positions and with one row for
// all queries a tile holds few different numbers, one a diagonal: they are written out once and
// read as vectors. Otherwise numbers are looked up one by one.
template <class T>
class RelativeBias {
 public:
  RelativeBias(const Problem<T>& problem, int64_t width, Arena<T>& arena)
      : bias_(problem.bias), scratch_(arena.take(kTileKeys * width + kTileKeys + width)) {}

  // Adds to scores in units of 1 / unit.
  void add(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width, T unit,
           T* tile) const {
    const Tag<T> d;
    if (is_diagonal()) {
      const T* table = bias_.relative.row(first.batch, first.head, 0);
      for (int64_t n = 0; n < keys + width - 1; ++n)
        scratch_[n] = unit * table[diagonal(first, key, keys, n)];
      for (int64_t j = 0; j < keys; ++j) {
        for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
          T* at = tile + j * width + lane;
          hn::Store(hn::Add(hn::Load(d, at), hn::LoadU(d, scratch_ + keys - 1 - j + lane)), d, at);
        }
      }
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* table = bias_.relative.row(first.batch, first.head, first.query + r);
      for (int64_t j = 0; j < keys; ++j)
        tile[j * width + r] += unit * table[index(first.query + r, key + j)];
    }
  }

  // gradient += ds_ij at the place that each pair looked up.
  void differentiate(T* gradient, const Row& first, int64_t rows, int64_t key, int64_t keys,
                     int64_t width, const T* tile) const {
    const Tag<T> d;
    if (is_diagonal()) {
      T* to = gradient + (bias_.relative.row(first.batch, first.head, 0) - bias_.relative.data);
      std::fill_n(scratch_, keys + width, T(0));
      for (int64_t j = 0; j < keys; ++j) {
        for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
          T* at = scratch_ + keys - 1 - j + lane;
          hn::StoreU(hn::Add(hn::LoadU(d, at), hn::Load(d, tile + j * width + lane)), d, at);
        }
      }
      for (int64_t n = 0; n < keys + width - 1; ++n)
        to[diagonal(first, key, keys, n)] += scratch_[n];
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      T* to = gradient +
              (bias_.relative.row(first.batch, first.head, first.query + r) - bias_.relative.data);
      for (int64_t j = 0; j < keys; ++j) to[index(first.query + r, key + j)] += tile[j * width + r];
    }
  }

 private:
  bool is_diagonal() const {
    return bias_.relative.row_stride == 0 && bias_.query_positions == nullptr &&
           bias_.key_positions == nullptr;
  }

  int64_t clamp(int64_t distance) const {
    return std::clamp<int64_t>(distance + bias_.relative_offset, 0, bias_.relative_count - 1);
  }

  // The place of the pairs with i - j + keys - 1 = n, counted from the tile's corner.
  int64_t diagonal(const Row& first, int64_t key, int64_t keys, int64_t n) const {
    return clamp(key + keys - 1 - first.query - n);
  }

  int64_t index(int64_t query, int64_t key) const {
    return clamp((bias_.key_positions == nullptr ? key : bias_.key_positions[key]) -
                 (bias_.query_positions == nullptr ? query : bias_.query_positions[query]));
  }

  const Bias<T>& bias_;
  T* scratch_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
