#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/forward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/forward-inl.h"
#include "attend/kernels/cpu/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

void ForwardFloat(const ForwardPlan<float>& plan, int64_t task, Arena<float>& arena) {
  Forward(plan, task, arena);
}

void ForwardDouble(const ForwardPlan<double>& plan, int64_t task, Arena<double>& arena) {
  Forward(plan, task, arena);
}

void PackBFloat16(const BFloat16Plan& plan, int64_t task, Arena<float>& arena) {
  PackBFloat16Block(plan, task, arena);
}

bool PacksBFloat16() { return kLanes<float> == 16; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(PackBFloat16);
HWY_EXPORT(PacksBFloat16);

template <>
ForwardTask<float> forward_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(ForwardFloat);
}

template <>
ForwardTask<double> forward_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(ForwardDouble);
}

BFloat16Task bfloat16_task() { return &HWY_DYNAMIC_DISPATCH(PackBFloat16); }

bool packs_bfloat16() { return HWY_DYNAMIC_DISPATCH(PacksBFloat16)(); }

}  // namespace attend::kernels
#endif
