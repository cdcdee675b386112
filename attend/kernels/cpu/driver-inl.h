#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <type_traits>
#include <vector>

#include "attend/kernels/cpu/half_rows-inl.h"
#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/parallel.h"

// Shared by the drivers of the passes.

namespace attend::kernels {

// Multiply-adds below which waking a thread costs more than its share: some 50 us if each reads a
// number from memory.
inline constexpr double kLeastShare = 1 << 19;

// Number of threads for a number of multiply-adds, the product of `sizes`. At most `threads`; 0
// allows all.
inline int worthwhile_threads(std::initializer_list<int64_t> sizes, int threads) {
  const int most = threads > 0 ? threads : current_threads().most();
  double shares = 1 / kLeastShare;
  for (const int64_t size : sizes) shares *= static_cast<double>(size);
  return static_cast<int>(std::clamp(shares, 1.0, static_cast<double>(most)));
}

inline int worthwhile_threads(const Shape& s, int threads) {
  return worthwhile_threads({s.batch, s.heads, s.queries, s.keys, s.depth + s.value_depth},
                            threads);
}

// Runs task(i, arena) for every i on up to `threads` threads. The first exception is rethrown.
template <class T, class Task>
void run_tasks(int64_t tasks, int threads, const Task& task) {
  const Threads& loop = current_threads();
  const int count = static_cast<int>(
      std::min<int64_t>(threads > 0 ? threads : loop.most(), std::max<int64_t>(1, tasks)));
  // With many tasks, a thread runs several in turn: each fetches data of the next one.
  const int64_t run = std::clamp<int64_t>(tasks / (int64_t{count} * 32), 1, 8);
  std::exception_ptr failure;
  std::mutex failing;
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    Arena<T> arena;
    for (int64_t begin; (begin = next.fetch_add(run, std::memory_order_relaxed)) < tasks;) {
      for (int64_t i = begin; i < std::min(begin + run, tasks); ++i) {
        try {
          arena.restart();
          task(i, arena);
        } catch (...) {
          const std::lock_guard lock(failing);
          if (!failure) failure = std::current_exception();
        }
      }
    }
  };
  if (count == 1)
    work();
  else
    loop.each(count, &work, [](const void* each) { (*static_cast<decltype(&work)>(each))(); });
  if (failure) std::rethrow_exception(failure);
}

// Preparation of the additive family, once per head; owns the arrays of its plan.
template <class T>
class AdditivePreparation {
 public:
  explicit AdditivePreparation(const Problem<T>& problem) { plan_.problem = &problem; }

  // Does nothing for families without preparation.
  void run(bool natural, int threads) {
    if (!is_prepared(plan_.problem->score)) return;
    const Shape& s = plan_.problem->shape;
    constexpr int64_t kMostLanes = 16;  // a multiple of the lanes of every target
    plan_.natural = natural;
    plan_.padded = (s.depth + kMostLanes - 1) / kMostLanes * kMostLanes;
    const int64_t heads = plan_.heads();
    plan_.centre = numbers_.take(heads * plan_.padded);
    plan_.base = numbers_.take(heads * plan_.padded);
    plan_.constant = numbers_.take(heads);
    plan_.factor = numbers_.take(heads * s.keys * plan_.padded);
    plan_.weight = numbers_.take(heads * s.keys * plan_.padded);
    plan_.order = indices_.take(heads * plan_.padded);
    plan_.plain = indices_.take(heads * plan_.padded);
    plan_.ends = indices_.take(heads * 4);
    run_each(heads, threads, additive_head_task<T>());
    run_each(heads * plan_.key_blocks(), threads, additive_key_task<T>());
  }

  const AdditivePlan<T>& plan() const { return plan_; }

 private:
  void run_each(int64_t tasks, int threads, AdditiveTask<T> task) {
    run_tasks<T>(tasks, threads, [&](int64_t i, Arena<T>& arena) { task(plan_, i, arena); });
  }

  AdditivePlan<T> plan_;
  Arena<T> numbers_;
  Arena<int64_t> indices_;
};

// Computes the shifts for the weights; the arena holds them. Reads the problem, the lse and the
// selection of the plan.
template <class T>
RowShifts<T> find_shifts(SummaryPlan<T> plan, Arena<T>& arena, int threads) {
  if (!needs_shifts(plan.problem->normaliser)) return {};
  const Shape& s = plan.problem->shape;
  const int64_t rows = s.batch * s.heads * s.queries;
  plan.shifts = {arena.take(rows), arena.take(rows)};
  plan.column_sums = nullptr;  // makes a task a block of rows
  std::vector<int64_t> heads(plan.selection.heads.begin(), plan.selection.heads.end());
  std::sort(heads.begin(), heads.end());
  heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
  plan.selection.heads = heads;
  const SummaryTask<T> find = shift_task<T>();
  run_tasks<T>(plan.tasks(), threads,
               [&](int64_t task, Arena<T>& scratch) { find(plan, task, scratch); });
  return plan.shifts;
}

// Shape of 16-bit rows that are converted to float and back: [batch, heads, rows, depth].
struct RowsOf {
  int64_t batch, heads, rows, depth;

  int64_t size() const { return batch * heads * rows * depth; }
};

// Calls work(b, h) for each head.
template <class Work>
void each_head(const RowsOf& shape, int threads, const Work& work) {
  if (shape.size() == 0) return;
  run_tasks<float>(shape.batch * shape.heads, threads, [&](int64_t head, Arena<float>&) {
    work(head / shape.heads, head % shape.heads);
  });
}

// Returns a contiguous copy in float, held by the arena.
template <class S>
View<float> widen_rows(const RowsOf& shape, const View<const S>& from, Arena<float>& arena,
                       int threads) {
  const View<float> to = contiguous(arena.take(shape.size()), shape.heads, shape.rows, shape.depth);
  each_head(shape, threads, [&](int64_t b, int64_t h) {
    widen_block({from.row(b, h, 0), from.row_stride}, shape.rows, shape.depth,
                {to.row(b, h, 0), to.row_stride});
  });
  return to;
}

template <class S>
void narrow_rows(const RowsOf& shape, const View<float>& from, const View<S>& to, int threads) {
  each_head(shape, threads, [&](int64_t b, int64_t h) {
    narrow_block({from.row(b, h, 0), from.row_stride}, shape.rows, shape.depth,
                 {to.row(b, h, 0), to.row_stride});
  });
}

inline RowsOf query_rows(const Shape& s) { return {s.batch, s.heads, s.queries, s.depth}; }
inline RowsOf key_rows(const Shape& s) { return {s.batch, s.key_heads, s.keys, s.depth}; }
inline RowsOf value_rows(const Shape& s) { return {s.batch, s.key_heads, s.keys, s.value_depth}; }
inline RowsOf context_rows(const Shape& s) { return {s.batch, s.heads, s.queries, s.value_depth}; }

// The problem in float, without queries, keys and values.
template <class S>
Problem<float> without_rows(const Problem<S>& from) {
  Problem<float> to;
  to.shape = from.shape;
  to.score = from.score;
  to.scope = from.scope;
  to.bias = from.bias;
  to.sinks = from.sinks;
  to.normaliser = from.normaliser;
  to.alphas = from.alphas;
  to.top = from.top;
  to.dropout = from.dropout;
  return to;
}

// The problem in float with copies of its queries, keys and values; without keys and values if
// `keys` is false.
template <class S>
Problem<float> widen_problem(const Problem<S>& from, Arena<float>& arena, int threads,
                             bool keys = true) {
  Problem<float> to = without_rows(from);
  to.query = widen_rows(query_rows(from.shape), from.query, arena, threads);
  if (!keys) return to;
  to.key = widen_rows(key_rows(from.shape), from.key, arena, threads);
  to.value = widen_rows(value_rows(from.shape), from.value, arena, threads);
  return to;
}

// Whether all numbers are finite. A term of 0 times infinity would turn a product NaN that is
// infinite in floats.
inline bool all_finite(const RowsOf& shape, const View<const BFloat16>& view, int threads) {
  std::atomic<bool> finite = true;
  each_head(shape, threads, [&](int64_t b, int64_t h) {
    if (!is_finite_block({view.row(b, h, 0), view.row_stride}, shape.rows, shape.depth))
      finite = false;
  });
  return finite;
}

// Packs the keys and values of a problem for bf16 products, if supported; owns the arrays of its
// plan. Float is kept for sparse normalisers, which recompute scores repeatedly for their
// thresholds, for few queries, edges and non-finite numbers.
class BFloat16Preparation {
 public:
  // grad_context: null in forward, not null in backward.
  template <class S>
  BFloat16Preparation(const Problem<S>& problem,
                      const std::type_identity_t<View<const S>>* grad_context, int threads) {
    if constexpr (std::is_same_v<S, BFloat16>) {
      const Shape& s = problem.shape;
      const BFloat16Kernels* const kernels = bfloat16_kernels();
      if (kernels == nullptr || problem.score.family != Family::dot || few_queries(s) ||
          is_sparse(problem.normaliser) || edge_scope(problem.scope) ||
          !all_finite(query_rows(s), problem.query, threads) ||
          !all_finite(key_rows(s), problem.key, threads) ||
          !all_finite(value_rows(s), problem.value, threads) ||
          (grad_context != nullptr && !all_finite(context_rows(s), *grad_context, threads)))
        return;
      plan_.kernels = kernels;
      plan_.shape = s;
      plan_.query = bits(problem.query);
      plan_.key = bits(problem.key);
      plan_.value = bits(problem.value);
      plan_.key_rows = take(s.depth);
      if (grad_context != nullptr) {
        plan_.grad_context = bits(*grad_context);
        plan_.key_columns = take(s.depth);
        plan_.value_rows = take(s.value_depth);
      } else {
        plan_.value_columns = take(s.value_depth);
      }
      const BFloat16Task pack = bfloat16_task();
      run_tasks<float>(plan_.heads() * plan_.blocks(), threads,
                       [&](int64_t task, Arena<float>& arena) { pack(plan_, task, arena); });
    }
  }

  bool used() const { return plan_.kernels != nullptr; }
  const BFloat16Plan& plan() const { return plan_; }

 private:
  // A product that begins inside the last block reads up to kBFloat16Rows rows past it.
  uint16_t* take(int64_t depth) {
    const int64_t count = plan_.size(depth), beyond = kBFloat16Rows * BFloat16Plan::padded(depth);
    uint16_t* const numbers = numbers_.take(count + beyond);
    std::fill_n(numbers + count, beyond, uint16_t{0});
    return numbers;
  }

  static View<const uint16_t> bits(const View<const BFloat16>& view) {
    return {reinterpret_cast<const uint16_t*>(view.data), view.batch_stride, view.head_stride,
            view.row_stride};
  }

  BFloat16Plan plan_;
  Arena<uint16_t> numbers_;
};

}  // namespace attend::kernels
