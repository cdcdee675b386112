#if defined(ATTEND_KERNELS_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_MASK_INL_H_
#undef ATTEND_KERNELS_MASK_INL_H_
#else
#define ATTEND_KERNELS_MASK_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Sets scores outside the scope to -inf in a partial tile [keys][width].

template <class T>
void MaskByRange(const BlockScope& scope, int64_t rows, int64_t begin, int64_t keys, int64_t width,
                 T* tile) {
  const Tag<T> d;
  HWY_ALIGN T first[BlockScope::kMaxRows];
  HWY_ALIGN T last[BlockScope::kMaxRows];
  for (int64_t r = 0; r < width; ++r) {
    const KeyRange range = r < rows ? scope.row_range(r) : KeyRange{begin, begin + keys};
    first[r] = static_cast<T>(std::clamp<int64_t>(range.begin - begin, 0, keys));
    last[r] = static_cast<T>(std::clamp<int64_t>(range.end - begin, 0, keys));
  }
  const auto outside = Set<T>(-std::numeric_limits<T>::infinity());
  for (int64_t j = 0; j < keys; ++j) {
    const auto key = Set<T>(static_cast<T>(j));
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      T* cell = tile + j * width + lane;
      const auto inside =
          hn::And(hn::Ge(key, hn::Load(d, first + lane)), hn::Lt(key, hn::Load(d, last + lane)));
      hn::Store(hn::IfThenElse(inside, hn::Load(d, cell), outside), d, cell);
    }
  }
}

template <class T>
void MaskByByte(const BlockScope& scope, int64_t begin, int64_t keys, int64_t width, T* tile) {
  uint8_t allowed[kTileKeys * BlockScope::kMaxRows];
  scope.fill_mask(begin, begin + keys, width, allowed);
  for (int64_t i = 0; i < keys * width; ++i) {
    tile[i] = allowed[i] ? tile[i] : -std::numeric_limits<T>::infinity();
  }
}

template <class T>
void MaskTile(const BlockScope& scope, int64_t rows, int64_t begin, int64_t keys, int64_t width,
              T* tile) {
  if (scope.one_range()) return MaskByRange(scope, rows, begin, keys, width, tile);
  MaskByByte(scope, begin, keys, width, tile);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
