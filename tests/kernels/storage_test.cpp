#include "attend/kernels/storage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "attend/kernels/cpu/half_rows-inl.h"
#include "tests/kernels/run.h"

namespace attend::kernels {
namespace storage_test {

template <class S>
struct Format;
template <>
struct Format<BFloat16> {
  static constexpr int kMantissa = 7, kBias = 127;
};
template <>
struct Format<Float16> {
  static constexpr int kMantissa = 10, kBias = 15;
};

// The value of the bits by IEEE 754.
template <class S>
double meaning(uint16_t bits) {
  using F = Format<S>;
  const int mantissa = bits & ((1 << F::kMantissa) - 1);
  const int exponent = (bits & 0x7fff) >> F::kMantissa;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0x7fff >> F::kMantissa)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return exponent == 0 ? sign * std::ldexp(mantissa, 1 - F::kBias - F::kMantissa)
                       : sign * std::ldexp(mantissa + (1 << F::kMantissa),
                                           exponent - F::kBias - F::kMantissa);
}

template <class S>
class Storage : public ::testing::Test {};
using Halves = ::testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(Storage, Halves);

TYPED_TEST(Storage, WidensEveryNumber) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = widen(TypeParam{static_cast<uint16_t>(bits)});
    const double want = meaning<TypeParam>(static_cast<uint16_t>(bits));
    ASSERT_TRUE(std::isnan(want) ? std::isnan(x) : x == want && std::signbit(x) == bits >> 15)
        << bits;
    const TypeParam back = narrow<TypeParam>(x);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(widen(back)));
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

// Rounds to the nearer neighbour, halfway to the even one, and past the largest number to infinity.
TYPED_TEST(Storage, NarrowsToTheNearest) {
  for (uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const double low = meaning<TypeParam>(static_cast<uint16_t>(bits));
    double high = meaning<TypeParam>(static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(low)) break;
    if (std::isinf(high)) high = low + (low - meaning<TypeParam>(static_cast<uint16_t>(bits - 1)));
    const auto middle = static_cast<float>(low + (high - low) / 2);
    if (middle != low + (high - low) / 2) continue;  // bfloat16's least numbers are also float's
    const auto infinity = std::numeric_limits<float>::infinity();
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(narrow<TypeParam>(middle).bits, even);
    ASSERT_EQ(narrow<TypeParam>(-middle).bits, even | 0x8000);
    ASSERT_EQ(narrow<TypeParam>(std::nextafter(middle, infinity)).bits, bits + 1);
    ASSERT_EQ(narrow<TypeParam>(std::nextafter(middle, 0.0F)).bits, bits);
  }
  EXPECT_TRUE(std::isinf(widen(narrow<TypeParam>(std::numeric_limits<float>::max()))));
}

TYPED_TEST(Storage, NaNStaysNaN) {
  for (uint32_t low = 1; low < 0x800000; low += 4099) {
    for (const uint32_t sign : {0U, 0x80000000U}) {
      const auto nan = std::bit_cast<float>(sign | 0x7f800000U | low);
      ASSERT_TRUE(std::isnan(widen(narrow<TypeParam>(nan)))) << low;
    }
  }
}

// All upper halves, including NaN and infinities, with lower halves around ties. Also a last
// partial column and gaps between rows.
TEST(StorageBlocks, AreConvertedAsSingleNumbersAre) {
  constexpr int64_t rows = 3 * 6, columns = 65536 / 3, stride = columns + 5;
  static_assert(columns % 16 != 0);
  std::vector<float> from(rows * stride), wide(rows * stride);
  int64_t row = 0;
  for (const uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
    for (uint32_t third = 0; third < 3; ++third, ++row)
      for (uint32_t c = 0; c < columns; ++c)
        from[static_cast<size_t>(row * stride + c)] =
            std::bit_cast<float>((third + 3 * c + 1) << 16 | low);
  std::vector<BFloat16> to(from.size());
  testing::on_every_target([&] {
    narrow_block(RowBlock<const float>{from.data(), stride}, rows, columns,
                 RowBlock<BFloat16>{to.data(), stride});
    widen_block(RowBlock<const BFloat16>{to.data(), stride}, rows, columns,
                RowBlock<float>{wide.data(), stride});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const auto i = static_cast<size_t>(r * stride + c);
        ASSERT_EQ(to[i].bits, narrow<BFloat16>(from[i]).bits) << r << ", " << c;
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(widen(to[i])));
      }
    }
  });
}

}  // namespace storage_test
}  // namespace attend::kernels
