#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/edges.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/edge_plan-inl.h"
#include "attend/kernels/cpu/edges-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

void EdgeForwardFloat(const EdgePlan<float>& plan, int64_t task, Arena<float>& arena) {
  EdgeForward(plan, task, arena);
}

void EdgeForwardDouble(const EdgePlan<double>& plan, int64_t task, Arena<double>& arena) {
  EdgeForward(plan, task, arena);
}

void EdgeQueriesFloat(const EdgePlan<float>& plan, int64_t task, Arena<float>& arena) {
  EdgeQueryGradients(plan, task, arena);
}

void EdgeQueriesDouble(const EdgePlan<double>& plan, int64_t task, Arena<double>& arena) {
  EdgeQueryGradients(plan, task, arena);
}

void EdgeKeysFloat(const EdgePlan<float>& plan, int64_t task, Arena<float>& arena) {
  EdgeKeyGradients(plan, task, arena);
}

void EdgeKeysDouble(const EdgePlan<double>& plan, int64_t task, Arena<double>& arena) {
  EdgeKeyGradients(plan, task, arena);
}

void EdgeSummaryFloat(const EdgePlan<float>& plan, int64_t task, Arena<float>& arena) {
  EdgeSummary(plan, task, arena);
}

void EdgeSummaryDouble(const EdgePlan<double>& plan, int64_t task, Arena<double>& arena) {
  EdgeSummary(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(EdgeForwardFloat);
HWY_EXPORT(EdgeForwardDouble);
HWY_EXPORT(EdgeQueriesFloat);
HWY_EXPORT(EdgeQueriesDouble);
HWY_EXPORT(EdgeKeysFloat);
HWY_EXPORT(EdgeKeysDouble);
HWY_EXPORT(EdgeSummaryFloat);
HWY_EXPORT(EdgeSummaryDouble);

template <>
EdgeTask<float> edge_forward_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeForwardFloat);
}

template <>
EdgeTask<double> edge_forward_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeForwardDouble);
}

template <>
EdgeTask<float> edge_query_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeQueriesFloat);
}

template <>
EdgeTask<double> edge_query_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeQueriesDouble);
}

template <>
EdgeTask<float> edge_key_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeKeysFloat);
}

template <>
EdgeTask<double> edge_key_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeKeysDouble);
}

template <>
EdgeTask<float> edge_summary_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeSummaryFloat);
}

template <>
EdgeTask<double> edge_summary_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(EdgeSummaryDouble);
}

}  // namespace attend::kernels
#endif
