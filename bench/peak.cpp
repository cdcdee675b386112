#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cpp"
#include "bench/peak.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>

#include "attend/kernels/peak.h"

HWY_BEFORE_NAMESPACE();
namespace attend::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

uint64_t ReadAll(const void* data, int64_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  constexpr int kStreams = 4;
  const int64_t lanes = hn::Lanes(d);
  const auto* from = static_cast<const uint64_t*>(data);
  const int64_t count = bytes / 8;
  hn::Vec<decltype(d)> sum[kStreams];
  for (auto& x : sum) x = hn::Zero(d);
  int64_t i = 0;
  for (; i + kStreams * lanes <= count; i += kStreams * lanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kStreams; ++s) sum[s] = hn::Add(sum[s], hn::LoadU(d, from + i + s * lanes));
  }
  uint64_t total = 0;
  for (const auto& x : sum) total += hn::GetLane(hn::SumOfLanes(d, x));
  for (; i < count; ++i) total += from[i];
  return total;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::bench {

HWY_EXPORT(ReadAll);

uint64_t read_all(const void* data, int64_t bytes) {
  return HWY_DYNAMIC_DISPATCH(ReadAll)(data, bytes);
}

double core_frequency() {
  constexpr int kUnrolled = 16, kRounds = 10000;
  double best = 0;
  uint64_t sum = 1, step = 3;
  for (int burst = 0; burst < 20; ++burst) {
    const double start = kernels::processor_seconds();
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
      for (int i = 0; i < kUnrolled; ++i) {
        sum += step;
        asm volatile("" : "+r"(sum), "+r"(step));  // else the compiler computes the sum
      }
    }
    const double seconds = kernels::processor_seconds() - start;
    best = std::max(best, double(kUnrolled) * kRounds / seconds);
  }
  return best;
}

}  // namespace attend::bench
#endif
