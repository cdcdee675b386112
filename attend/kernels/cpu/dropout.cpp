#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/dropout.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "attend/kernels/cpu/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Drops entries first ... first + count - 1 of a row.
template <class T>
void DropRow(uint32_t row_key, const Dropout& dropout, int64_t first, const T* from, int64_t count,
             T* to) {
  const Tag<T> d;
  const DropoutBits<T> bits;
  const uint32_t threshold = dropout_threshold(dropout);
  const T scale = static_cast<T>(1 / (1 - dropout.probability));
  const auto thresholds = hn::Set(bits, threshold);
  const auto scales = Set<T>(scale);
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) {
    const auto places = hn::Iota(bits, static_cast<uint32_t>(first + i));
    const auto keys = hn::Mul(places, hn::Set(bits, dropout_key(1)));
    const auto drawn = Mix(bits, hn::Xor(hn::Set(bits, row_key), keys));
    const auto kept = hn::Mul(hn::LoadU(d, from + i), scales);
    hn::StoreU(hn::IfThenZeroElse(Drops<T>(drawn, thresholds), kept), d, to + i);
  }
  for (; i < count; ++i)
    to[i] = dropout_mix(row_key ^ dropout_key(first + i)) < threshold ? T{0} : from[i] * scale;
}

template <class T>
void Drop(const Dropout& dropout, const T* from, int64_t count, T* to) {
  // Keys have 32 bits; rows of this length keep positions distinct.
  constexpr int64_t row = int64_t{1} << 20;
  for (int64_t done = 0; done < count;) {
    const int64_t place = dropout.first_key + done;
    const int64_t part = std::min(row - place % row, count - done);
    DropRow(dropout_row_key(dropout, {0, 0, place / row}, 1), dropout, place % row, from + done,
            part, to + done);
    done += part;
  }
}

void DropFloat(const Dropout& dropout, const float* from, int64_t count, float* to) {
  Drop(dropout, from, count, to);
}

void DropDouble(const Dropout& dropout, const double* from, int64_t count, double* to) {
  Drop(dropout, from, count, to);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attend/kernels/attention.h"
#include "attend/kernels/check.h"

namespace attend::kernels {

HWY_EXPORT(DropFloat);
HWY_EXPORT(DropDouble);

void drop(const Dropout& dropout, const float* from, int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(DropFloat)(dropout, from, count, to);
}

void drop(const Dropout& dropout, const double* from, int64_t count, double* to) {
  HWY_DYNAMIC_DISPATCH(DropDouble)(dropout, from, count, to);
}

template <class T>
void dropout_mask(const Shape& s, const Dropout& dropout, T* mask) {
  check(dropout);
  const uint32_t threshold = dropout_threshold(dropout);
  const T kept = static_cast<T>(1 / (1 - dropout.probability));
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const Row entry{row / s.queries / s.heads, row / s.queries % s.heads, row % s.queries};
    const uint32_t row_key = dropout_row_key(dropout, entry, s.heads);
    for (int64_t j = 0; j < s.keys; ++j)
      mask[row * s.keys + j] =
          dropout_mix(row_key ^ dropout_key(dropout.first_key + j)) >= threshold ? kept : T(0);
  }
}

template void dropout_mask(const Shape&, const Dropout&, float*);
template void dropout_mask(const Shape&, const Dropout&, double*);

}  // namespace attend::kernels
#endif
