#include "attend/kernels/parallel.h"

#include <gmock/gmock.h>

#include <vector>

#include "attend/kernels/attention.h"
#include "attend/kernels/causal_convolution.h"
#include "attend/kernels/recurrence.h"

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
  constexpr int64_t kHeads = 4, kRows = 100, kDepth = 64;
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

// Counts of threads that one call asks for.
template <class Call>
std::vector<int> counts_of(const Call& call) {
  const WithThreads threads({[] { return 3; }, in_order});
  counts.clear();
  call();
  return counts;
}

std::vector<int> recurrence_counts(int64_t tokens) {
  constexpr int64_t kHeads = 16, kDepth = 64;
  const std::vector<float> x(static_cast<size_t>(kHeads * tokens * kDepth), 0.5F);
  std::vector<float> output(x.size()), states(kHeads * kDepth * kDepth);
  Recurrence<float> problem;
  problem.shape = {1, kHeads, kHeads, tokens, kDepth, kDepth, 0};
  problem.query = problem.key = problem.value =
      contiguous<const float>(x.data(), kHeads, tokens, kDepth);
  problem.initial = states.data();
  return counts_of([&] {
    recurrence_forward<float>(
        problem, {contiguous(output.data(), kHeads, tokens, kDepth), states.data(), nullptr});
  });
}

std::vector<int> convolution_counts(int64_t tokens) {
  constexpr int64_t kChannels = 2048, kWidth = 4;
  const std::vector<float> x(static_cast<size_t>(tokens * kChannels), 0.5F);
  const std::vector<float> weights(kChannels * kWidth, 0.5F);
  std::vector<float> output(x.size());
  CausalConvolution<float> problem;
  problem.tokens = tokens;
  problem.channels = kChannels;
  problem.width = kWidth;
  problem.input = x.data();
  problem.batch_stride = tokens * kChannels;
  problem.token_stride = kChannels;
  problem.weight = weights.data();
  return counts_of([&] { causal_convolution<float>(problem, output.data(), nullptr); });
}

TEST(Parallel, OneStepOfDecodingStaysOnItsThread) {
  EXPECT_THAT(recurrence_counts(1), ::testing::IsEmpty());
  EXPECT_THAT(recurrence_counts(16), ::testing::ElementsAre(3));
  EXPECT_THAT(convolution_counts(1), ::testing::IsEmpty());
  EXPECT_THAT(convolution_counts(256), ::testing::ElementsAre(3));
}

}  // namespace
}  // namespace parallel_test
}  // namespace attend::kernels
