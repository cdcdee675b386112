#include "attend/kernels/adam.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/adam.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Updates Lanes(d) numbers from index i on.
template <class D>
HWY_INLINE void AdamAt(D d, const Adam& step, const AdamVectors& v, int64_t i) {
  const auto g = hn::Mul(hn::Set(d, step.scale), hn::LoadU(d, v.gradient + i));
  auto first = hn::LoadU(d, v.first + i), second = hn::LoadU(d, v.second + i);
  first = hn::MulAdd(hn::Set(d, step.first_share), hn::Sub(g, first), first);
  second = hn::MulAdd(hn::Set(d, step.second_share), hn::Sub(hn::Mul(g, g), second), second);
  auto weights = hn::LoadU(d, v.weights + i);
  const auto decay = hn::Mul(hn::Set(d, step.decay), hn::LoadU(d, v.decayed + i));
  weights = hn::NegMulAdd(decay, weights, weights);
  const auto size =
      hn::Add(hn::Div(hn::Sqrt(second), hn::Set(d, step.root)), hn::Set(d, step.epsilon));
  weights = hn::NegMulAdd(hn::Set(d, step.rate), hn::Div(first, size), weights);
  auto average = hn::LoadU(d, v.average + i);
  average = hn::MulAdd(hn::Set(d, step.average_share), hn::Sub(weights, average), average);
  hn::StoreU(first, d, v.first + i);
  hn::StoreU(second, d, v.second + i);
  hn::StoreU(weights, d, v.weights + i);
  hn::StoreU(average, d, v.average + i);
}

void AdamStep(const Adam& step, const AdamVectors& vectors, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes<float> <= count; i += kLanes<float>) AdamAt(Tag<float>(), step, vectors, i);
  for (; i < count; ++i) AdamAt(hn::CappedTag<float, 1>(), step, vectors, i);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(AdamStep);

void adam_step(const Adam& step, const AdamVectors& vectors, int64_t count) {
  HWY_DYNAMIC_DISPATCH(AdamStep)(step, vectors, count);
}

}  // namespace attend::kernels
#endif
