#include "attend/kernels/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace dropout_test {

template <class T>
class Drop : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Drop, Types);

// The definition of the header, number by number; the last size extends into a second row.
TYPED_TEST(Drop, IsTheSameOnEveryTarget) {
  using T = TypeParam;
  const Dropout dropout{0.3, 77};
  const uint32_t threshold = dropout_threshold(dropout);
  for (const int64_t count : {0, 1, 3, 59, 111, (1 << 20) + 5}) {
    std::vector<T> from(static_cast<size_t>(count)), wanted;
    std::iota(from.begin(), from.end(), T{1});
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t key = dropout_row_key(dropout, {0, 0, i >> 20}, 1);
      const bool dropped = dropout_mix(key ^ dropout_key(i & ((1 << 20) - 1))) < threshold;
      wanted.push_back(dropped ? 0 : from[static_cast<size_t>(i)] * static_cast<T>(1 / (1 - 0.3)));
    }
    on_every_target([&] {
      std::vector<T> to(from.size(), T{-1});
      drop(dropout, from.data(), count, to.data());
      EXPECT_EQ(to, wanted) << count;
    });
  }
}

// Parts of a whole from `first_key` on: in one row, across its end, and in the second row.
TYPED_TEST(Drop, OfATailIsTheTailOfTheWhole) {
  using T = TypeParam;
  constexpr int64_t kRow = 1 << 20;
  const std::vector<T> from(kRow + 300, T{1});
  std::vector<T> whole(from.size());
  drop({0.3, 77}, from.data(), std::ssize(from), whole.data());
  for (const auto& places :
       std::vector<std::pair<int64_t, int64_t>>{{1, 59}, {kRow - 7, 111}, {kRow + 3, 59}}) {
    const int64_t first = places.first, count = places.second;
    Dropout dropout{0.3, 77};
    dropout.first_key = first;
    on_every_target([&] {
      std::vector<T> to(static_cast<size_t>(count), T{-1});
      drop(dropout, from.data(), count, to.data());
      EXPECT_TRUE(std::equal(to.begin(), to.end(), whole.begin() + first)) << first;
    });
  }
}

// The share of n draws has a deviation of sqrt(p (1 - p) / n) = 0.0005; the bound is five
// deviations.
TEST(DropShare, IsTheProbability) {
  for (const double probability : {0.0, 0.1, 0.5}) {
    const std::vector<float> from(1000000, 1.0F);
    std::vector<float> to(from.size());
    drop({probability, 3}, from.data(), 1000000, to.data());
    const auto dropped = std::count(to.begin(), to.end(), 0.0F);
    EXPECT_NEAR(static_cast<double>(dropped) / 1e6, probability, 0.0025);
  }
}

}  // namespace dropout_test
}  // namespace attend::kernels::testing
