#include "attend/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/kernels/check.h"
#include "attend/kernels/driver-inl.h"

namespace attend::kernels {
namespace {

// Few queries and many keys, as in decoding: splits of the keys share the work. As with the chunks
// of backward, their number depends on the shape alone.
int64_t key_splits(const Shape& s, int64_t blocks, Normaliser normaliser) {
  if (is_sparse(normaliser)) return 1;
  constexpr int64_t kTasks = 8, kLeastKeys = 1024;
  const int64_t tasks = std::max<int64_t>(1, s.batch * s.heads * blocks);
  return std::max<int64_t>(1, std::min((kTasks + tasks - 1) / tasks, s.keys / kLeastKeys));
}

// Adds the result over other keys where weights do not depend on them.
template <class T>
void add_split(const Shape& s, const Result<T>& into, const Result<T>& other) {
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const int64_t i = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
    T* context = into.context.row(b, h, i);
    const T* add = other.context.row(b, h, i);
    for (int64_t e = 0; e < s.value_depth; ++e) context[e] += add[e];
    into.lse[row] = std::max(into.lse[row], other.lse[row]);  // 0, or -inf without keys
  }
}

template <class T>
void run_forward(const Problem<T>& problem, const Result<T>& result, const HalfKeys& half,
                 int threads) {
  const Shape& s = problem.shape;
  AdditivePreparation<T> prepared(problem);
  if (!few_queries(s)) prepared.run(false, threads);
  const int64_t blocks = (s.queries + kForwardRows - 1) / kForwardRows;
  const int64_t splits = key_splits(s, blocks, problem.normaliser);
  const int64_t split_keys = (s.keys + splits - 1) / splits, rows = s.batch * s.heads * s.queries;
  Arena<T> partial;
  ForwardPlan<T> plan{&problem, prepared.plan(), result, blocks, splits, split_keys,
                      half,     nullptr,         nullptr};
  if (splits > 1) {
    plan.partial_context = partial.take((splits - 1) * rows * s.value_depth);
    plan.partial_lse = partial.take(splits * rows);
    if (result.lse == nullptr) plan.result.lse = plan.partial_lse + (splits - 1) * rows;
  }
  const ForwardTask<T> forward = forward_task<T>();
  run_tasks<T>(plan.tasks(), threads,
               [&](int64_t task, Arena<T>& arena) { forward(plan, task, arena); });
  for (int64_t split = 1; split < splits; ++split) {
    const Result<T> other = plan.split_result(split);
    problem.normaliser == Normaliser::softmax ? merge(s, plan.result, other)
                                              : add_split(s, plan.result, other);
  }
}

// Few queries of the dot family read keys and values as they are stored: the copies would cost more
// than the work.
template <class S>
bool reads_halves(const Problem<S>& problem) {
  return few_queries(problem.shape) && problem.score.family == Family::dot;
}

}  // namespace

template <class S>
void attention_forward(const Problem<S>& problem, const Result<S>& result, int threads) {
  check(problem, result);
  if constexpr (kIsHalf<S>) {
    Arena<float> arena;
    const bool direct = reads_halves(problem);
    Problem<float> wide = widen_problem(problem, arena, threads, !direct);
    HalfKeys half;
    if (direct) {
      half = {reinterpret_cast<const uint16_t*>(problem.key.data),
              reinterpret_cast<const uint16_t*>(problem.value.data), std::is_same_v<S, BFloat16>};
      wide.key = {nullptr, problem.key.batch_stride, problem.key.head_stride,
                  problem.key.row_stride};
      wide.value = {nullptr, problem.value.batch_stride, problem.value.head_stride,
                    problem.value.row_stride};
    }
    const RowsOf rows = context_rows(problem.shape);
    const View<float> context =
        contiguous(arena.take(rows.size()), rows.heads, rows.rows, rows.depth);
    run_forward<float>(wide, {context, result.lse}, half, threads);
    narrow_rows(rows, context, result.context, threads);
  } else {
    run_forward(problem, result, {}, threads);
  }
}

template <class T>
void merge(const Shape& s, const Result<T>& into, const Result<T>& other) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const int64_t i = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
    const T mine = into.lse[row], theirs = other.lse[row];
    if (theirs == -kInfinity) continue;
    const T top = std::max(mine, theirs), low = std::min(mine, theirs);
    const T lse = mine == -kInfinity ? theirs : top + std::log1p(std::exp(low - top));
    const T keep = std::exp(mine - lse), take = std::exp(theirs - lse);
    T* context = into.context.row(b, h, i);
    const T* add = other.context.row(b, h, i);
    for (int64_t e = 0; e < s.value_depth; ++e) context[e] = keep * context[e] + take * add[e];
    into.lse[row] = lse;
  }
}

template void attention_forward(const Problem<float>&, const Result<float>&, int);
template void attention_forward(const Problem<double>&, const Result<double>&, int);
template void attention_forward(const Problem<BFloat16>&, const Result<BFloat16>&, int);
template void attention_forward(const Problem<Float16>&, const Result<Float16>&, int);
template void merge(const Shape&, const Result<float>&, const Result<float>&);
template void merge(const Shape&, const Result<double>&, const Result<double>&);

}  // namespace attend::kernels
