#include <algorithm>
#include <optional>

#include "attend/kernels/cpu/driver-inl.h"
#include "attend/kernels/cpu/edge_driver-inl.h"
#include "attend/kernels/cpu/edge_plan-inl.h"
#include "attend/kernels/cpu/gradient_sums-inl.h"

namespace attend::kernels {
namespace {

// Returns the rows if they fill whole vectors of every target; otherwise copies padded with 0, held
// by the arena.
template <class T>
View<const T> whole_rows(const RowsOf& shape, const View<const T>& from, Arena<T>& arena,
                         int threads) {
  constexpr int64_t kWhole = 64 / sizeof(T);
  const int64_t padded = (shape.depth + kWhole - 1) / kWhole * kWhole;
  if (padded == shape.depth) return from;
  const View<T> to = contiguous(arena.take(shape.batch * shape.heads * shape.rows * padded),
                                shape.heads, shape.rows, padded);
  each_head(shape, threads, [&](int64_t b, int64_t h) {
    for (int64_t i = 0; i < shape.rows; ++i) {
      T* const row = to.row(b, h, i);
      std::fill(std::copy_n(from.row(b, h, i), shape.depth, row), row + padded, T(0));
    }
  });
  return to;
}

// A problem along edges with rows of whole vectors, and its plan.
template <class T>
class EdgeProblem {
 public:
  EdgeProblem(const Problem<T>& given, const EdgeScope& scope, int threads) : problem_(given) {
    const Shape& s = given.shape;
    problem_.query = whole_rows(query_rows(s), given.query, arena_, threads);
    problem_.key = whole_rows(key_rows(s), given.key, arena_, threads);
    problem_.value = whole_rows(value_rows(s), given.value, arena_, threads);
    plan.problem = &problem_;
    plan.scope = scope;
    plan.columns = scope.lists.longest(s);
  }
  EdgeProblem(const EdgeProblem&) = delete;
  EdgeProblem& operator=(const EdgeProblem&) = delete;

  // One number per edge and head.
  T* take_edges() {
    const Shape& s = problem_.shape;
    return arena_.take(s.batch * s.heads * plan.columns);
  }
  Arena<T>& arena() { return arena_; }

  EdgePlan<T> plan;

 private:
  Problem<T> problem_;
  Arena<T> arena_;
};

template <class T>
void run_edge_tasks(const EdgePlan<T>& plan, EdgeTask<T> task, int64_t count, int threads) {
  run_tasks<T>(count, threads, [&](int64_t n, Arena<T>& arena) { task(plan, n, arena); });
}

template <class T>
void clear_bias_gradients(const EdgePlan<T>& plan) {
  const Shape& s = plan.problem->shape;
  const Bias<T>& bias = plan.problem->bias;
  const Gradients<T>& to = plan.gradients;
  const int64_t rows = s.batch * s.heads * s.queries;
  if (to.bias != nullptr) clear_gradient(s, bias.dense, s.keys, to.bias);
  if (to.relative != nullptr) clear_gradient(s, bias.relative, bias.relative_count, to.relative);
  if (to.edges != nullptr) clear_gradient(s, bias.edges, plan.columns, to.edges);
  if (to.slopes != nullptr) std::fill_n(to.slopes, s.heads, T(0));
  if (to.centres != nullptr) std::fill_n(to.centres, rows, T(0));
  if (to.widths != nullptr) std::fill_n(to.widths, rows, T(0));
  if (to.query_sums != nullptr) std::fill_n(to.query_sums, rows, 0.0);
  if (to.key_sums != nullptr) std::fill_n(to.key_sums, s.batch * s.heads * s.keys, 0.0);
  if (to.query_products != nullptr)
    std::fill_n(to.query_products, rows * bias.product_columns, T(0));
  if (to.key_products != nullptr)
    std::fill_n(to.key_products, s.batch * s.heads * s.keys * bias.product_columns, T(0));
}

// Sums ds for the biases, one edge after another. A thread processes all entries of a head, or all
// heads if they share a bias.
template <class T>
void add_bias_gradients(const EdgePlan<T>& plan, int threads) {
  const Shape& s = plan.problem->shape;
  const Bias<T>& bias = plan.problem->bias;
  const Gradients<T>& to = plan.gradients;
  const auto shared = [](const T* gradient, const View<const T>& view) {
    return gradient != nullptr && view.head_stride == 0;
  };
  const bool together = shared(to.bias, bias.dense) || shared(to.relative, bias.relative) ||
                        shared(to.edges, bias.edges);
  const int64_t heads = together ? s.heads : 1;
  const EdgeBias<T> terms(*plan.problem);
  run_tasks<T>(s.heads / heads, threads, [&](int64_t task, Arena<T>&) {
    for (int64_t h = task * heads; h < (task + 1) * heads; ++h) {
      for (int64_t b = 0; b < s.batch; ++b) {
        const T* list = plan.by_score + plan.list(b, h);
        for (int64_t i = 0; i < s.queries; ++i) {
          const EdgeRow edges = plan.edges({b, h, i});
          for (int64_t n = 0; n < edges.count; ++n)
            terms.differentiate(to, {b, h, i}, edges.keys[n], edges.first + n,
                                list[edges.first + n]);
        }
      }
    }
  });
}

}  // namespace

template <class T>
void edge_forward(const Problem<T>& given, const EdgeScope& scope, const Result<T>& result,
                  int threads) {
  EdgeProblem<T> problem(given, scope, threads);
  problem.plan.result = result;
  run_edge_tasks(problem.plan, edge_forward_task<T>(), problem.plan.tasks(), threads);
}

template <class T>
void edge_backward(const Problem<T>& given, const EdgeScope& scope, const Upstream<T>& upstream,
                   const Gradients<T>& gradients, int threads) {
  const Shape& s = given.shape;
  EdgeProblem<T> problem(given, scope, threads);
  Arena<T>& arena = problem.arena();
  EdgePlan<T>& plan = problem.plan;
  plan.upstream = upstream;
  plan.upstream.grad_context = whole_rows(context_rows(s), upstream.grad_context, arena, threads);
  plan.gradients = gradients;
  std::optional<EdgesByKey> sorted;
  if (scope.lists.by_key == nullptr) sorted = sorted_by_key(scope.lists, s);
  plan.by_key = sorted ? &*sorted : scope.lists.by_key;
  plan.by_value = problem.take_edges();
  plan.by_score = problem.take_edges();
  plan.by_product = given.score.soft_cap > 0 ? problem.take_edges() : plan.by_score;
  const int64_t parts = s.batch * plan.blocks(), rows = s.batch * s.heads * s.queries;
  if (gradients.vector != nullptr) plan.vector_sums = arena.take(parts * s.heads * s.depth);
  if (gradients.sinks != nullptr) plan.shifts = {arena.take(rows), arena.take(rows)};
  if (gradients.alphas != nullptr) plan.by_alpha = arena.take(rows);
  run_edge_tasks(plan, edge_query_task<T>(), plan.tasks(), threads);
  run_edge_tasks(plan, edge_key_task<T>(), plan.key_tasks(), threads);
  add_parts(plan.vector_sums, parts, s.heads * s.depth, gradients.vector);
  if (gradients.sinks != nullptr) add_sink_gradients(given, upstream, plan.shifts, gradients.sinks);
  add_rows_of_heads(s, plan.by_alpha, gradients.alphas);
  clear_bias_gradients(plan);
  if (EdgeBias<T>(given).any()) add_bias_gradients(plan, threads);
}

template <class T>
void edge_summary(const Problem<T>& given, const EdgeScope& scope, const SummaryPlan<T>& wanted,
                  int threads) {
  EdgeProblem<T> problem(given, scope, threads);
  EdgePlan<T>& plan = problem.plan;
  plan.summary = wanted;
  plan.summary.problem = plan.problem;
  plan.summary.column_sums = nullptr;  // makes a task a block of rows
  const Shape& s = given.shape;
  const int64_t heads = plan.summary.heads();
  Arena<T>& arena = problem.arena();
  if (wanted.column_sums != nullptr)
    plan.summary.edge_weights = arena.take(s.batch * heads * plan.columns);
  if (plan.summary.edge_weights != nullptr)
    std::fill_n(plan.summary.edge_weights, s.batch * heads * plan.columns, T(0));
  run_edge_tasks(plan, edge_summary_task<T>(), plan.summary.tasks(), threads);
  if (wanted.column_sums == nullptr) return;
  run_tasks<T>(s.batch * heads, threads, [&](int64_t task, Arena<T>&) {
    const int64_t batch = task / heads, first = wanted.selection.first_row;
    T* sums = wanted.column_sums + task * s.keys;
    std::fill_n(sums, s.keys, T(0));
    for (int64_t r = 0; r < wanted.selection.rows; ++r) {
      const EdgeRow edges = plan.edges({batch, plan.summary.head(task % heads), first + r});
      const T* weights = plan.summary.edge_weights + task * plan.columns + edges.first;
      for (int64_t n = 0; n < edges.count; ++n) sums[edges.keys[n]] += weights[n];
    }
  });
}

template void edge_forward(const Problem<float>&, const EdgeScope&, const Result<float>&, int);
template void edge_forward(const Problem<double>&, const EdgeScope&, const Result<double>&, int);
template void edge_backward(const Problem<float>&, const EdgeScope&, const Upstream<float>&,
                            const Gradients<float>&, int);
template void edge_backward(const Problem<double>&, const EdgeScope&, const Upstream<double>&,
                            const Gradients<double>&, int);
template void edge_summary(const Problem<float>&, const EdgeScope&, const SummaryPlan<float>&, int);
template void edge_summary(const Problem<double>&, const EdgeScope&, const SummaryPlan<double>&,
                           int);

}  // namespace attend::kernels
