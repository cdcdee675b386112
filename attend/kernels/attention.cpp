#include "attend/kernels/attention.h"

#include <omp.h>

#include <algorithm>
#include <exception>

#include "attend/base/error.h"
#include "attend/kernels/plan-inl.h"

namespace attend::kernels {
namespace {

template <class T>
void check(const Problem<T>& problem) {
  const Shape& s = problem.shape;
  for (const int64_t size : {s.batch, s.heads, s.key_heads, s.queries, s.keys, s.depth,
                             s.value_depth}) {
    if (size < 0) fail("[attention] shape holds {}; sizes must not be negative", size);
  }
  if (s.heads > 0 && (s.key_heads == 0 || s.heads % s.key_heads != 0)) {
    fail("[attention] key_heads is {}; it must divide heads, {}", s.key_heads, s.heads);
  }
  if (problem.score.family == Family::additive && problem.score.vector == nullptr) {
    fail("[attention] the additive score has no vector; set score.vector");
  }
}

// Runs task(i, arena) for every i on up to `threads` threads. The first exception is rethrown.
template <class T, class Task>
void run_tasks(int64_t tasks, int threads, const Task& task) {
  std::exception_ptr failure;
  const int count = static_cast<int>(
      std::min<int64_t>(threads > 0 ? threads : omp_get_max_threads(), std::max<int64_t>(1, tasks)));
#pragma omp parallel num_threads(count) if (count > 1)
  {
    Arena<T> arena;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < tasks; ++i) {
      try {
        arena.restart();
        task(i, arena);
      } catch (...) {
#pragma omp critical(attend_kernels_failure)
        if (!failure) failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

template <class T>
void attention_forward(const Problem<T>& problem, const Result<T>& result, int threads) {
  check(problem);
  const int64_t blocks = (problem.shape.queries + kBlockRows - 1) / kBlockRows;
  const ForwardPlan<T> plan{&problem, result, blocks};
  const ForwardTask<T> forward = forward_task<T>();
  run_tasks<T>(plan.tasks(), threads,
               [&](int64_t task, Arena<T>& arena) { forward(plan, task, arena); });
}

template void attention_forward(const Problem<float>&, const Result<float>&, int);
template void attention_forward(const Problem<double>&, const Result<double>&, int);

}  // namespace attend::kernels
