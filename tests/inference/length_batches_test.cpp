// Tests of how sources are divided into batches.
#include <gmock/gmock.h>

#include <numeric>

#include "attend/inference/length_batches-inl.h"

namespace attend {
namespace length_batches_test {

using Batches = std::vector<std::vector<int64_t>>;

Batches batches(const std::vector<int64_t>& lengths, size_t size, bool may_pad) {
  std::vector<EncodedPair> pairs;
  for (const int64_t length : lengths)
    pairs.push_back({std::vector<int64_t>(static_cast<size_t>(length), 5), {}});
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  return length_batches(pairs, order, size, may_pad);
}

TEST(LengthBatches, HaveOneLengthWherePaddingCounts) {
  EXPECT_THAT(batches({3, 2, 3, 3, 2}, 2, false), (Batches{{0, 2}, {1, 4}, {3}}));
  EXPECT_THAT(batches({}, 2, false), Batches{});
}

TEST(LengthBatches, PadWhatIsLeftOfWholeOnes) {
  EXPECT_THAT(batches({3, 2, 3, 3, 2, 4}, 2, true), (Batches{{0, 2}, {1, 4}, {3, 5}}));
  EXPECT_THAT(batches({4, 3, 2}, 2, true), (Batches{{0}, {1, 2}}));
}

TEST(LengthBatches, PaddingAtMostDoublesTheTokens) {
  EXPECT_THAT(batches({2, 2, 2, 8}, 8, true), (Batches{{0, 1, 2}, {3}}));  // 4 * 8 > 2 * 14
  EXPECT_THAT(batches({2, 2, 2, 5}, 8, true), (Batches{{0, 1, 2, 3}}));    // 4 * 5 <= 2 * 11
}

}  // namespace length_batches_test
}  // namespace attend
