// Tests of the data that ranks send and hold, and of their amount of work.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>

#include "attend/kernels/scope.h"
#include "tests/parallel/shared_problem.h"

namespace attend {
namespace costs_test {

SharedProblem self_attention(int64_t length, at::ScalarType dtype, const Scope& scope) {
  const auto random = [&](int64_t heads) { return at::randn({1, heads, length, 16}).to(dtype); };
  return {random(4), random(2), random(2), {}, [scope](const Tensors&) {
            return AttentionSpec{.scope = scope};
          }};
}

// Forward: each rank sends the keys and values of all ranks but the next, in their dtype. Backward:
// a ring sends them again. Ranks also send the gradients for all other ranks, in the arithmetic's
// dtype.
TEST(DistributedCosts, BytesAreThoseOfTheFormula) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const SharedProblem problem = self_attention(50, dtype, causal());
    for (const int64_t ranks : {1, 2, 3, 8}) {
      for (const Sharding& sharding : shardings_of(50, ranks)) {
        for (const Exchange exchange : {Exchange::gather, Exchange::ring}) {
          ThreadWorld world(ranks);
          world.run([&](Communicator& rank) {
            by_rank(problem, rank, {.queries = sharding, .exchange = exchange});
          });
          for (int64_t r = 0; r < ranks; ++r) {
            const auto length_at = [&](int64_t shard) {
              return length_of(sharding[static_cast<size_t>(shard % ranks)]);
            };
            const int64_t numbers = 2 * (16 + 16);  // per position: heads x depths
            const auto stored = static_cast<int64_t>(c10::elementSize(dtype));
            const int64_t keys = (50 - length_at(r + 1)) * numbers * stored;
            const int64_t gradients = (50 - length_at(r)) * numbers * 4;
            const int64_t passes = exchange == Exchange::ring ? 2 : 1;
            EXPECT_EQ(world.bytes_sent(r), ranks == 1 ? 0 : passes * keys + gradients);
          }
        }
      }
    }
  }
}

// Number of tiles of 64 queries and 64 keys with a pair in scope, as the kernels skip the others.
// For any runs: one step of a ring, or all.
int64_t tiles_of(const Runs& queries, const Runs& keys) {
  int64_t tiles = 0;
  for (const Run& q : queries) {
    for (const Run& k : keys) {
      const kernels::Scope scope = kernels::causal(q.first - k.first);
      for (int64_t i = 0; i < q.count; i += 64) {
        const kernels::BlockScope block(scope, {0, 0, i}, std::min<int64_t>(64, q.count - i),
                                        k.count);
        for (int64_t j = 0; j < k.count; j += 64)
          tiles += block.cover(j, std::min(k.count, j + 64)) != kernels::Cover::empty;
      }
    }
  }
  return tiles;
}

double imbalance(const std::vector<int64_t>& tiles) {
  double sum = 0;
  for (const int64_t count : tiles) sum += static_cast<double>(count);
  const auto maximum = static_cast<double>(*std::max_element(tiles.begin(), tiles.end()));
  return maximum * static_cast<double>(tiles.size()) / sum - 1;
}

// Relative excess of the busiest rank's work over the mean: over the whole ring, and in its worst
// step.
std::pair<double, double> imbalances(const Sharding& sharding) {
  const size_t ranks = sharding.size();
  std::vector<int64_t> whole(ranks);
  double worst = 0;
  for (size_t step = 0; step < ranks; ++step) {
    std::vector<int64_t> of_step;
    for (size_t r = 0; r < ranks; ++r) {
      of_step.push_back(tiles_of(sharding[r], sharding[(r + ranks - step) % ranks]));
      whole[r] += of_step.back();
    }
    worst = std::max(worst, imbalance(of_step));
  }
  return {imbalance(whole), worst};
}

TEST(DistributedCosts, ZigzagSharesCausalTilesOut) {
  for (const int64_t ranks : {2, 3, 4, 8}) {
    for (const int64_t length : {16384, 16001}) {
      const auto [whole, worst] = imbalances(zigzag_sharding(length, ranks));
      EXPECT_LE(whole, 0.05) << ranks << " ranks, " << length;
      EXPECT_LE(worst, 0.05) << ranks << " ranks, " << length;
      EXPECT_GT(imbalances(contiguous_sharding(length, ranks)).first, 0.4);
    }
  }
}

// LibTorch 1.13 and 2 report sums of different types.
template <class Sum>
Sum reported(void (c10::MemoryReportingInfoBase::*)(void*, int64_t, Sum, Sum, c10::Device));
using Reported = decltype(reported(&c10::MemoryReportingInfoBase::reportMemoryUsage));

// Measures the tensors that a thread holds.
class TensorMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t size, Reported, Reported, c10::Device) override {
    held_ += size;
    max_ = std::max(max_, held_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t maximum() const { return max_; }

 private:
  int64_t held_ = 0, max_ = 0;
};

int64_t max_held(int64_t length, int64_t ranks, Exchange exchange) {
  const SharedProblem problem = self_attention(length, at::kFloat, causal());
  const SharedSequences shared = {.queries = zigzag_sharding(length, ranks), .exchange = exchange};
  std::vector<int64_t> maximum(static_cast<size_t>(ranks));
  ThreadWorld(ranks).run([&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    const Runs& own = shared.queries[rank];
    const Tensors leaves =
        leaves_of({at_runs(problem.query, own, -2), at_runs(problem.key, own, -2),
                   at_runs(problem.value, own, -2)});
    const Tensor weights = weights_like(leaves[0]);
    const auto memory = std::make_shared<TensorMemory>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
    const AttentionResult result =
        distributed_attention(world, leaves[0], leaves[1], leaves[2], problem.make({}), shared);
    result.context.backward(weights);
    maximum[rank] = memory->maximum();
  });
  return *std::max_element(maximum.begin(), maximum.end());
}

// In addition to inputs and upstream gradients. From four ranks on, all messages are in transit at
// once.
TEST(DistributedCosts, MemoryOfARingFallsWithTheRanks) {
  constexpr int64_t length = 2048;
  const auto of_all = [](int64_t ranks, Exchange exchange) {
    return static_cast<double>(ranks * max_held(length, ranks, exchange));
  };
  const double of_one = of_all(1, Exchange::gather), of_four = of_all(4, Exchange::ring);
  ASSERT_GT(of_one, 0);
  EXPECT_LT(of_four, 1.5 * of_one);
  for (const int64_t ranks : {8, 16})
    EXPECT_NEAR(of_all(ranks, Exchange::ring) / of_four, 1, 0.1) << ranks;
  EXPECT_GT(of_all(8, Exchange::gather), 3 * of_one);
}

}  // namespace costs_test
}  // namespace attend
