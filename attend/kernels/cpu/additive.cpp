#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/additive.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/additive-prepare-inl.h"
#include "attend/kernels/cpu/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

void PrepareHeadFloat(const AdditivePlan<float>& plan, int64_t task, Arena<float>& arena) {
  PrepareHead(plan, task, arena);
}

void PrepareHeadDouble(const AdditivePlan<double>& plan, int64_t task, Arena<double>& arena) {
  PrepareHead(plan, task, arena);
}

void PrepareKeysFloat(const AdditivePlan<float>& plan, int64_t task, Arena<float>& arena) {
  PrepareKeys(plan, task, arena);
}

void PrepareKeysDouble(const AdditivePlan<double>& plan, int64_t task, Arena<double>& arena) {
  PrepareKeys(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(PrepareHeadFloat);
HWY_EXPORT(PrepareHeadDouble);
HWY_EXPORT(PrepareKeysFloat);
HWY_EXPORT(PrepareKeysDouble);

template <>
AdditiveTask<float> additive_head_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(PrepareHeadFloat);
}

template <>
AdditiveTask<double> additive_head_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(PrepareHeadDouble);
}

template <>
AdditiveTask<float> additive_key_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(PrepareKeysFloat);
}

template <>
AdditiveTask<double> additive_key_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(PrepareKeysDouble);
}

}  // namespace attend::kernels
#endif
