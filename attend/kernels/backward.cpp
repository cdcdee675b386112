#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/backward-inl.h"
#include "attend/kernels/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

void BackwardFloat(const BackwardPlan<float>& plan, int64_t task, Arena<float>& arena) {
  Backward(plan, task, arena);
}

void BackwardDouble(const BackwardPlan<double>& plan, int64_t task, Arena<double>& arena) {
  Backward(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardDouble);

template <>
BackwardTask<float> backward_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(BackwardFloat);
}

template <>
BackwardTask<double> backward_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(BackwardDouble);
}

}  // namespace attend::kernels
#endif
