#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/backward-inl.h"
#include "attend/kernels/cpu/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

void BackwardFloat(const BackwardPlan<float>& plan, int64_t task, Arena<float>& arena) {
  Backward(plan, task, arena);
}

void BackwardDouble(const BackwardPlan<double>& plan, int64_t task, Arena<double>& arena) {
  Backward(plan, task, arena);
}

void DeltasFloat(const BackwardPlan<float>& plan, int64_t task, Arena<float>& arena) {
  Deltas(plan, task, arena);
}

void DeltasDouble(const BackwardPlan<double>& plan, int64_t task, Arena<double>& arena) {
  Deltas(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardDouble);
HWY_EXPORT(DeltasFloat);
HWY_EXPORT(DeltasDouble);

template <>
BackwardTask<float> backward_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(BackwardFloat);
}

template <>
BackwardTask<double> backward_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(BackwardDouble);
}

template <>
BackwardTask<float> delta_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(DeltasFloat);
}

template <>
BackwardTask<double> delta_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(DeltasDouble);
}

}  // namespace attend::kernels
#endif
