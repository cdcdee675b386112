#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/weights.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/plan-inl.h"
#include "attend/kernels/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

void WeightsFloat(const WeightsPlan<float>& plan, int64_t task, Arena<float>& arena) {
  Weights(plan, task, arena);
}

void WeightsDouble(const WeightsPlan<double>& plan, int64_t task, Arena<double>& arena) {
  Weights(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(WeightsFloat);
HWY_EXPORT(WeightsDouble);

template <>
WeightsTask<float> weights_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(WeightsFloat);
}

template <>
WeightsTask<double> weights_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(WeightsDouble);
}

}  // namespace attend::kernels
#endif
