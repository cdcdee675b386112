#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cpp"
#include "bench/peak.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <ctime>

HWY_BEFORE_NAMESPACE();
namespace attend::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// 12 independent chains: 2 ports x 4 cycles of latency need 8, and 16 registers hold 12.
double Peak() {
  constexpr int kChains = 12, kRounds = 20000;
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> chain[kChains];
  for (auto& x : chain) x = hn::Set(d, 1.0f);
  const auto factor = hn::Set(d, 0.999f);
  double best = 0;
  for (int repeat = 0; repeat < 100; ++repeat) {
    const double start = now();
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
      for (int c = 0; c < kChains; ++c) chain[c] = hn::MulAdd(chain[c], factor, factor);
    }
    const double seconds = now() - start;
    best = std::max(best, 2.0 * kChains * kRounds * hn::Lanes(d) / seconds);
  }
  volatile float keep = 0;
  for (const auto& x : chain) keep = keep + hn::GetLane(x);
  return best;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::bench {
HWY_EXPORT(Peak);
double chosen_peak() { return HWY_DYNAMIC_DISPATCH(Peak)(); }
}  // namespace attend::bench

double multiply_add_peak() { return attend::bench::chosen_peak(); }
#endif
