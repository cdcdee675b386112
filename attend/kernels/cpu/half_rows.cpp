#include "attend/kernels/cpu/half_rows-inl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/half_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Tag<float>>;

void WidenRows(const RowBlock<const BFloat16>& from, int64_t rows, int64_t columns,
               const RowBlock<float>& to) {
  for (int64_t r = 0; r < rows; ++r) {
    const BFloat16* const row = from.data + r * from.stride;
    float* const out = to.data + r * to.stride;
    int64_t c = 0;
    for (; c + kLanes<float> <= columns; c += kLanes<float>) Store(Load(row + c), out + c);
    for (; c < columns; ++c) out[c] = widen(row[c]);
  }
}

// A quiet NaN with the same upper bits, as in narrow(); rounding could carry over otherwise.
HWY_INLINE Vec<float> RoundableNan(Vec<float> x) {
  const auto quiet = hn::Or(hn::BitCast(Words(), x), hn::Set(Words(), 0x400000));
  return hn::BitCast(Tag<float>(), hn::And(quiet, hn::Set(Words(), 0xffff0000)));
}

void NarrowRows(const RowBlock<const float>& from, int64_t rows, int64_t columns,
                const RowBlock<BFloat16>& to) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = from.data + r * from.stride;
    BFloat16* const out = to.data + r * to.stride;
    int64_t c = 0;
    for (; c + kLanes<float> <= columns; c += kLanes<float>) {
      const auto x = Load(row + c);
      Store(hn::IfThenElse(hn::IsNaN(x), RoundableNan(x), x), out + c);
    }
    for (; c < columns; ++c) out[c] = narrow<BFloat16>(row[c]);
  }
}

bool FiniteRows(const RowBlock<const BFloat16>& block, int64_t rows, int64_t columns) {
  constexpr int16_t kInfinity = 0x7f80, kMagnitude = 0x7fff;
  const Tag<int16_t> d;
  auto maximum = hn::Zero(d);
  int16_t last = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const auto* const row = reinterpret_cast<const int16_t*>(block.data + r * block.stride);
    int64_t c = 0;
    for (; c + kLanes<int16_t> <= columns; c += kLanes<int16_t>)
      maximum = hn::Max(maximum, hn::And(hn::LoadU(d, row + c), hn::Set(d, kMagnitude)));
    for (; c < columns; ++c) last = std::max(last, static_cast<int16_t>(row[c] & kMagnitude));
  }
  return last < kInfinity && hn::AllTrue(d, hn::Lt(maximum, hn::Set(d, kInfinity)));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(WidenRows);
HWY_EXPORT(NarrowRows);
HWY_EXPORT(FiniteRows);

void widen_block(const RowBlock<const BFloat16>& from, int64_t rows, int64_t columns,
                 const RowBlock<float>& to) {
  HWY_DYNAMIC_DISPATCH(WidenRows)(from, rows, columns, to);
}

void narrow_block(const RowBlock<const float>& from, int64_t rows, int64_t columns,
                  const RowBlock<BFloat16>& to) {
  HWY_DYNAMIC_DISPATCH(NarrowRows)(from, rows, columns, to);
}

bool is_finite_block(const RowBlock<const BFloat16>& block, int64_t rows, int64_t columns) {
  return HWY_DYNAMIC_DISPATCH(FiniteRows)(block, rows, columns);
}

}  // namespace attend::kernels
#endif
