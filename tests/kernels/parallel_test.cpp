#include "attend/kernels/parallel.h"

#include <gmock/gmock.h>

#include <vector>

#include "attend/kernels/attention.h"

namespace attend::kernels {
namespace parallel_test {
namespace {

std::vector<int> counts;

// Threads of the test, one after another.
void in_order(int count, const void* work, void (*run)(const void*)) {
  counts.push_back(count);
  for (int i = 0; i < count; ++i) run(work);
}

class WithThreads {
 public:
  explicit WithThreads(const Threads& threads) { set_threads(threads); }
  ~WithThreads() { set_threads(default_threads()); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;
};

TEST(Parallel, TheKernelsUseTheThreadsOfTheProgram) {
  constexpr int64_t kHeads = 4, kRows = 50, kDepth = 16;
  std::vector<float> x(kHeads * kRows * kDepth);
  for (size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n % 13) / 13;
  Problem<float> problem;
  problem.shape = {1, kHeads, kHeads, kRows, kRows, kDepth, kDepth};
  problem.query = problem.key = problem.value =
      contiguous<const float>(x.data(), kHeads, kRows, kDepth);
  std::vector<float> expected(x.size()), found(x.size());
  attention_forward<float>(problem, {contiguous(expected.data(), kHeads, kRows, kDepth)}, 2);
  counts.clear();
  {
    const WithThreads threads({[] { return 3; }, in_order});
    attention_forward<float>(problem, {contiguous(found.data(), kHeads, kRows, kDepth)});
    EXPECT_THAT(counts, ::testing::Contains(3));
    counts.clear();
    attention_forward<float>(problem, {contiguous(found.data(), kHeads, kRows, kDepth)}, 2);
    EXPECT_THAT(counts, ::testing::Each(2));
    counts.clear();
    attention_forward<float>(problem, {contiguous(found.data(), kHeads, kRows, kDepth)}, 1);
    EXPECT_TRUE(counts.empty());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace parallel_test
}  // namespace attend::kernels
