#include "attend/nn/replica_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace attend {
namespace {

TEST(ReplicaThreads, RunsEveryReplicaOnceARound) {
  ReplicaThreads threads(3);
  std::vector<int> counts(3);
  for (int round = 0; round < 200; ++round)
    threads.run([&](int64_t replica) { ++counts[static_cast<size_t>(replica)]; });
  EXPECT_EQ(counts, (std::vector<int>{200, 200, 200}));
}

TEST(ReplicaThreads, PassesOnExceptionsAndGoesOn) {
  ReplicaThreads threads(2);
  for (const int64_t bad : {0, 1}) {
    EXPECT_THROW(threads.run([&](int64_t replica) {
      if (replica == bad) throw std::runtime_error("bad");
    }),
                 std::runtime_error);
  }
  std::atomic<int> count = 0;
  threads.run([&](int64_t) { ++count; });
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace attend
