#include "attend/data/text_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/files.h"

namespace attend {
namespace text_windows_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int64_t> counted(int64_t tokens) {
  std::vector<int64_t> text(static_cast<size_t>(tokens));
  std::iota(text.begin(), text.end(), int64_t{4});
  return text;
}

TEST(ShuffledWindows, HoldEveryTokenOnce) {
  for (const int64_t tokens : {1, 3, 59, 111, 112}) {
    for (const int64_t length : {1, 7, 28, 500}) {
      std::vector<int64_t> seen(static_cast<size_t>(tokens), 0);
      int64_t shorter = 0;
      for (const TextWindow& window : shuffled_windows(tokens, length, 3, tokens)) {
        ASSERT_LT(window.first, window.end);
        ASSERT_LE(window.end - window.first, length);
        shorter += window.end - window.first < length;
        for (int64_t i = window.first; i < window.end; ++i) ++seen[static_cast<size_t>(i)];
      }
      EXPECT_THAT(seen, testing::Each(1)) << tokens << " " << length;
      EXPECT_LE(shorter, 2) << tokens << " " << length;
    }
  }
}

TEST(ShuffledWindows, AreCutElsewhereInEachEpoch) {
  std::set<int64_t> cuts;
  std::vector<int64_t> order, sorted;
  for (int64_t epoch = 0; epoch < 200; ++epoch)
    for (const TextWindow& window : shuffled_windows(100, 8, 1, epoch)) cuts.insert(window.end);
  // Every place is a cut at one of 8 offsets; 200 epochs miss one with probability 8 (7/8)^200.
  EXPECT_EQ(cuts.size(), 100U);
  for (const TextWindow& window : shuffled_windows(100, 8, 1, 0)) order.push_back(window.first);
  sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(order, sorted);
  std::vector<int64_t> again;
  for (const TextWindow& window : shuffled_windows(100, 8, 1, 0)) again.push_back(window.first);
  EXPECT_EQ(again, order);
}

TEST(WindowsInOrder, HaveWhatStandsBeforeThem) {
  const auto pairs = windows_in_order(counted(8), 3, 2);
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_THAT(pairs[0].source, IsEmpty());
  EXPECT_THAT(pairs[0].target, ElementsAre(4, 5, 6));
  EXPECT_THAT(pairs[1].source, ElementsAre(5, 6));
  EXPECT_THAT(pairs[1].target, ElementsAre(7, 8, 9));
  EXPECT_THAT(pairs[2].source, ElementsAre(8, 9));
  EXPECT_THAT(pairs[2].target, ElementsAre(10, 11));
  for (const EncodedPair& pair : pairs) EXPECT_TRUE(pair.no_eos);
  const auto far = windows_in_order(counted(3), 1, 5);
  EXPECT_THAT(far[2].source, ElementsAre(4, 5));
  EXPECT_THAT(windows_in_order({}, 3, 2), IsEmpty());
}

TEST(TextWindows, WantALength) {
  EXPECT_THAT(test::error_of([] { shuffled_windows(5, 0, 1, 0); }), HasSubstr("at least 1"));
  EXPECT_THAT(test::error_of([] { windows_in_order({4}, -1, 0); }), HasSubstr("at least 1"));
}

}  // namespace text_windows_test
}  // namespace attend
