#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "attend/parallel/absent_ranks-inl.h"

namespace attend {
namespace absent_ranks_test {

c10::intrusive_ptr<c10d::Store> store_with_reports(const std::vector<std::string>& ranks) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  for (const std::string& rank : ranks) store->add("failed-" + rank, 1);
  return store;
}

TEST(AbsentRanks, AreThoseThatDoNotReport) {
  const ProcessRank place = {.rank = 1, .size = 4};
  EXPECT_EQ(internal::missing_reports(*store_with_reports({"2"}), place), "ranks 0, 3 are");
  EXPECT_EQ(internal::missing_reports(*store_with_reports({"0", "2"}), place), "rank 3 is");
  EXPECT_EQ(internal::missing_reports(*store_with_reports({"0", "2", "3"}), place),
            "another process is");
}

TEST(AbsentRanks, ToldToTheOthersIncludeThisOne) {
  const auto store = store_with_reports({});
  internal::missing_reports(*store, {.rank = 1, .size = 2});
  EXPECT_TRUE(store->check({"failed-1"}));
}

}  // namespace absent_ranks_test
}  // namespace attend
