#include "attend/base/error.h"
#include "attend/kernels/check.h"
#include "attend/kernels/cpu/driver-inl.h"
#include "attend/kernels/cpu/edge_driver-inl.h"

namespace attend::kernels {
namespace {

template <class S>
void check_selection(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection) {
  check(problem);
  const Shape& s = problem.shape;
  if (lse == nullptr && s.batch * s.heads * s.queries > 0)
    fail("[attention] lse is null; pass what attention_forward wrote");
  if (selection.first_row < 0 || selection.rows < 0 ||
      selection.rows > s.queries - selection.first_row) {
    fail("[attention] {} rows of the weights from row {} were asked for; there are {} queries",
         selection.rows, selection.first_row, s.queries);
  }
  for (const int64_t head : selection.heads) {
    if (head < 0 || head >= s.heads)
      fail("[attention] head {} of the weights was asked for; there are {} heads", head, s.heads);
  }
}

void check_output(const Shape& s, const Selection& selection, const void* data, const char* name) {
  if (data == nullptr && s.batch * s.heads * selection.rows * s.keys > 0)
    fail("[attention] {} is null; it must point to what is to be written", name);
}

template <class T>
void run_summary(const Problem<T>& problem, SummaryPlan<T> plan, int threads) {
  plan.problem = &problem;
  if (const auto scope = edge_scope(problem.scope))
    return edge_summary(problem, *scope, plan, threads);
  AdditivePreparation<T> prepared(problem);
  if (!few_queries(problem.shape)) prepared.run(false, threads);
  plan.additive = prepared.plan();
  Arena<T> arena;
  plan.shifts = find_shifts(plan, arena, threads);
  const SummaryTask<T> summarise = summary_task<T>();
  run_tasks<T>(plan.tasks(), threads,
               [&](int64_t task, Arena<T>& arena) { summarise(plan, task, arena); });
}

// `fill` sets the requested outputs of the plan.
template <class S, class Fill>
void summarise(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection,
               int threads, const Fill& fill) {
  check_selection(problem, lse, selection);
  threads = worthwhile_threads(problem.shape, threads);
  SummaryPlan<Compute<S>> plan{};
  plan.lse = lse;
  plan.selection = selection;
  fill(plan);
  if constexpr (kIsHalf<S>) {
    Arena<float> arena;
    run_summary(widen_problem(problem, arena, threads), plan, threads);
  } else {
    run_summary(problem, plan, threads);
  }
}

}  // namespace

template <class S>
void attention_weights(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection,
                       const View<Compute<S>>& weights, int threads) {
  check_output(problem.shape, selection, weights.data, "weights");
  summarise(problem, lse, selection, threads, [&](auto& plan) { plan.weights = weights; });
}

template <class S>
void attention_edge_weights(const Problem<S>& problem, const Compute<S>* lse,
                            const Selection& selection, Compute<S>* weights, int threads) {
  if (!edge_scope(problem.scope))
    fail(
        "[attention] weights by edge were asked for; the scope is not one clause with one "
        "condition "
        "of edges");
  check_output(problem.shape, selection, weights, "weights");
  summarise(problem, lse, selection, threads, [&](auto& plan) { plan.edge_weights = weights; });
}

template <class S>
void attention_top(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection,
                   int64_t count, Compute<S>* weights, int64_t* keys, int threads) {
  if (count < 1) fail("[attention] the {} largest weights were asked for; 1 is the least", count);
  check_output(problem.shape, selection, weights, "weights");
  check_output(problem.shape, selection, keys, "keys");
  summarise(problem, lse, selection, threads, [&](auto& plan) {
    plan.top = count;
    plan.top_weights = weights;
    plan.top_keys = keys;
  });
}

template <class S>
void attention_entropy(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection,
                       Compute<S>* entropy, int threads) {
  check_output(problem.shape, selection, entropy, "entropy");
  summarise(problem, lse, selection, threads, [&](auto& plan) { plan.entropy = entropy; });
}

template <class S>
void attention_column_sums(const Problem<S>& problem, const Compute<S>* lse,
                           const Selection& selection, Compute<S>* sums, int threads) {
  check_output(problem.shape, selection, sums, "sums");
  summarise(problem, lse, selection, threads, [&](auto& plan) { plan.column_sums = sums; });
}

template void attention_weights(const Problem<float>&, const float*, const Selection&,
                                const View<float>&, int);
template void attention_edge_weights(const Problem<float>&, const float*, const Selection&, float*,
                                     int);
template void attention_top(const Problem<float>&, const float*, const Selection&, int64_t, float*,
                            int64_t*, int);
template void attention_entropy(const Problem<float>&, const float*, const Selection&, float*, int);
template void attention_column_sums(const Problem<float>&, const float*, const Selection&, float*,
                                    int);
template void attention_weights(const Problem<double>&, const double*, const Selection&,
                                const View<double>&, int);
template void attention_edge_weights(const Problem<double>&, const double*, const Selection&,
                                     double*, int);
template void attention_top(const Problem<double>&, const double*, const Selection&, int64_t,
                            double*, int64_t*, int);
template void attention_entropy(const Problem<double>&, const double*, const Selection&, double*,
                                int);
template void attention_column_sums(const Problem<double>&, const double*, const Selection&,
                                    double*, int);
template void attention_weights(const Problem<BFloat16>&, const float*, const Selection&,
                                const View<float>&, int);
template void attention_edge_weights(const Problem<BFloat16>&, const float*, const Selection&,
                                     float*, int);
template void attention_top(const Problem<BFloat16>&, const float*, const Selection&, int64_t,
                            float*, int64_t*, int);
template void attention_entropy(const Problem<BFloat16>&, const float*, const Selection&, float*,
                                int);
template void attention_column_sums(const Problem<BFloat16>&, const float*, const Selection&,
                                    float*, int);
template void attention_weights(const Problem<Float16>&, const float*, const Selection&,
                                const View<float>&, int);
template void attention_edge_weights(const Problem<Float16>&, const float*, const Selection&,
                                     float*, int);
template void attention_top(const Problem<Float16>&, const float*, const Selection&, int64_t,
                            float*, int64_t*, int);
template void attention_entropy(const Problem<Float16>&, const float*, const Selection&, float*,
                                int);
template void attention_column_sums(const Problem<Float16>&, const float*, const Selection&, float*,
                                    int);

}  // namespace attend::kernels
