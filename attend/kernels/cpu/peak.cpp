#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/peak.cpp"
#include "attend/kernels/peak.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <ctime>

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 12 independent chains: 2 ports x 4 cycles of latency need 8, and 16 registers hold 12.
double Peak() {
  constexpr int kChains = 12, kRounds = 10000;
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> chain[kChains];
  for (auto& x : chain) x = hn::Set(d, 1.0f);
  const auto factor = hn::Set(d, 0.999f);
  double best = 0;
  for (int burst = 0; burst < 40; ++burst) {
    const double start = processor_seconds();
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
      for (int c = 0; c < kChains; ++c) chain[c] = hn::MulAdd(chain[c], factor, factor);
    }
    const double seconds = processor_seconds() - start;
    best = std::max(best, 2.0 * kChains * kRounds * hn::Lanes(d) / seconds);
  }
  volatile float keep = 0;
  for (const auto& x : chain) keep = keep + hn::GetLane(x);
  return best;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(Peak);

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double multiply_add_peak() { return HWY_DYNAMIC_DISPATCH(Peak)(); }

}  // namespace attend::kernels
#endif
