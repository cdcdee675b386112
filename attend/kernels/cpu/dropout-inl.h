#if defined(ATTEND_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_DROPOUT_INL_H_
#undef ATTEND_KERNELS_DROPOUT_INL_H_
#else
#define ATTEND_KERNELS_DROPOUT_INL_H_
#endif

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

template <class T>
using DropoutBits = hn::Rebind<uint32_t, Tag<T>>;

// dropout_mix for lanes.
template <class Bits>
HWY_INLINE hn::Vec<Bits> Mix(Bits bits, hn::Vec<Bits> x) {
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  x = hn::Mul(x, hn::Set(bits, 0x21f0aaadu));
  x = hn::Xor(x, hn::ShiftRight<15>(x));
  x = hn::Mul(x, hn::Set(bits, 0x735a2d97u));
  return hn::Xor(x, hn::ShiftRight<15>(x));
}

template <class T>
HWY_INLINE hn::Mask<Tag<T>> Drops(hn::Vec<DropoutBits<T>> drawn,
                                  hn::Vec<DropoutBits<T>> threshold) {
  const Tag<T> d;
  // The comparison is signed; flipping the top bit makes it unsigned.
  const DropoutBits<T> bits;
  const hn::RebindToSigned<DropoutBits<T>> plain;
  const auto top = hn::Set(bits, 0x80000000u);
  const auto x = hn::BitCast(plain, hn::Xor(drawn, top));
  const auto y = hn::BitCast(plain, hn::Xor(threshold, top));
  if constexpr (sizeof(T) == 4) {
    return hn::RebindMask(d, hn::Lt(x, y));
  } else {
    const hn::Rebind<int64_t, Tag<T>> wide;
    return hn::RebindMask(d, hn::Lt(hn::PromoteTo(wide, x), hn::PromoteTo(wide, y)));
  }
}

// A weight is dropped by a hash of its position: nothing is stored, and every pass draws the same.
template <class T>
class TileDropout {
 public:
  using Bits = DropoutBits<T>;

  TileDropout(const Problem<T>& problem, Arena<T>& arena)
      : heads_(problem.shape.heads), dropout_(problem.dropout) {
    if (dropout_.probability == 0) return;
    row_keys_ = reinterpret_cast<uint32_t*>(arena.take(BlockScope::kMaxRows));
  }

  // tile[j][i] *= 0 or 1 / (1 - probability) for keys key + j.
  void apply(const Row& first, int64_t key, int64_t keys, int64_t width, T* tile) const {
    if (dropout_.probability == 0) return;
    const Tag<T> d;
    const Bits bits;
    for (int64_t r = 0; r < width; ++r) {
      row_keys_[r] = dropout_row_key(dropout_, {first.batch, first.head, first.query + r}, heads_);
    }
    const auto threshold = hn::Set(bits, dropout_threshold(dropout_));
    const auto kept = Set<T>(static_cast<T>(1 / (1 - dropout_.probability)));
    for (int64_t j = 0; j < keys; ++j) {
      const auto place = hn::Set(bits, dropout_key(dropout_.first_key + key + j));
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        const auto drawn = Mix(bits, hn::Xor(hn::LoadU(bits, row_keys_ + lane), place));
        T* cell = tile + j * width + lane;
        const auto factor = hn::IfThenZeroElse(Drops<T>(drawn, threshold), kept);
        hn::Store(hn::Mul(hn::Load(d, cell), factor), d, cell);
      }
    }
  }

 private:
  int64_t heads_;
  Dropout dropout_;
  uint32_t* row_keys_ = nullptr;  // [width]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
