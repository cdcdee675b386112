#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/summary.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/summary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

void SummariseFloat(const SummaryPlan<float>& plan, int64_t task, Arena<float>& arena) {
  Summarise(plan, task, arena);
}

void SummariseDouble(const SummaryPlan<double>& plan, int64_t task, Arena<double>& arena) {
  Summarise(plan, task, arena);
}

void ShiftsFloat(const SummaryPlan<float>& plan, int64_t task, Arena<float>& arena) {
  FindShifts(plan, task, arena);
}

void ShiftsDouble(const SummaryPlan<double>& plan, int64_t task, Arena<double>& arena) {
  FindShifts(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(SummariseFloat);
HWY_EXPORT(SummariseDouble);
HWY_EXPORT(ShiftsFloat);
HWY_EXPORT(ShiftsDouble);

template <>
SummaryTask<float> summary_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(SummariseFloat);
}

template <>
SummaryTask<double> summary_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(SummariseDouble);
}

template <>
SummaryTask<float> shift_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(ShiftsFloat);
}

template <>
SummaryTask<double> shift_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(ShiftsDouble);
}

}  // namespace attend::kernels
#endif
