#include "attend/kernels/attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "attend/base/error.h"
#include "attend/kernels/plan-inl.h"

namespace attend::kernels {
namespace {

template <class T>
void check(const Problem<T>& problem) {
  const Shape& s = problem.shape;
  for (const int64_t size :
       {s.batch, s.heads, s.key_heads, s.queries, s.keys, s.depth, s.value_depth}) {
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
  const int count = static_cast<int>(std::min<int64_t>(
      threads > 0 ? threads : omp_get_max_threads(), std::max<int64_t>(1, tasks)));
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

// What the additive family computes once a head; owns what its plan points to.
template <class T>
class AdditivePreparation {
 public:
  explicit AdditivePreparation(const Problem<T>& problem) { plan_.problem = &problem; }

  // Does nothing for other families.
  void run(bool natural, int threads) {
    if (plan_.problem->score.family != Family::additive) return;
    const Shape& s = plan_.problem->shape;
    constexpr int64_t kMostLanes = 16;  // of any target: a whole number of anybody's vectors
    plan_.natural = natural;
    plan_.padded = (s.depth + kMostLanes - 1) / kMostLanes * kMostLanes;
    const int64_t heads = plan_.heads();
    plan_.centre = numbers_.take(heads * plan_.padded);
    plan_.constant = numbers_.take(heads);
    plan_.factor = numbers_.take(heads * s.keys * plan_.padded);
    plan_.weight = numbers_.take(heads * s.keys * plan_.padded);
    plan_.order = indices_.take(heads * plan_.padded);
    plan_.hard = indices_.take(heads * plan_.padded);
    plan_.ends = indices_.take(heads * 3);
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

int64_t query_count(const Shape& s) { return s.batch * s.heads * s.queries * s.depth; }

// Few queries and many keys, as in decoding: splits of the keys share the work. As with the chunks
// of backward, their number depends on the shape alone.
int64_t key_splits(const Shape& s, int64_t blocks) {
  constexpr int64_t kTasks = 8, kLeastKeys = 1024;
  const int64_t tasks = std::max<int64_t>(1, s.batch * s.heads * blocks);
  return std::max<int64_t>(1, std::min((kTasks + tasks - 1) / tasks, s.keys / kLeastKeys));
}

// Chunks for the threads when there are few heads. Their number depends on the shape alone, so that
// sums are taken in the same order whatever the threads.
template <class T>
void cut_keys(BackwardPlan<T>& plan) {
  constexpr int64_t kTasks = 8, kLeastKeys = 4 * kTileKeys;
  const Shape& s = plan.problem->shape;
  const bool shared = plan.gradients.bias != nullptr;  // the chunks are then all there is to share
  const int64_t heads = shared ? 1 : std::max<int64_t>(1, s.batch * s.key_heads);
  const int64_t wanted = std::min((kTasks + heads - 1) / heads, s.keys / kLeastKeys);
  const int64_t tiles = (s.keys + kTileKeys - 1) / kTileKeys;
  const int64_t chunks = std::max<int64_t>(1, wanted);
  plan.chunk_keys = std::max<int64_t>(1, (tiles + chunks - 1) / chunks * kTileKeys);
  plan.chunks = std::max<int64_t>(1, (s.keys + plan.chunk_keys - 1) / plan.chunk_keys);
}

template <class T>
void add_partial_gradients(const BackwardPlan<T>& plan, int threads) {
  const Shape& s = plan.problem->shape;
  run_tasks<T>(s.batch * s.heads, threads, [&](int64_t head, Arena<T>&) {
    for (int64_t chunk = 1; chunk < plan.chunks; ++chunk) {
      const View<T> from = plan.query_gradient(chunk), to = plan.gradients.query;
      for (int64_t i = 0; i < s.queries; ++i) {
        const T* add = from.row(head / s.heads, head % s.heads, i);
        T* sum = to.row(head / s.heads, head % s.heads, i);
        for (int64_t a = 0; a < s.depth; ++a) sum[a] += add[a];
      }
    }
  });
}

// sum[n] = the sum over the batch and the chunks of partial[..][n].
template <class T>
void add_partial(const BackwardPlan<T>& plan, const T* partial, int64_t count, T* sum) {
  if (partial == nullptr || sum == nullptr) return;
  std::fill_n(sum, count, T(0));
  for (int64_t chunk = 0; chunk < plan.problem->shape.batch * plan.chunks; ++chunk) {
    for (int64_t n = 0; n < count; ++n) sum[n] += partial[chunk * count + n];
  }
}

// With w = exp(sink - lse) the weight of the sink, which has no value:
// dsink = sum_i w_i (dlse_i - sum_e dc_ie c_ie).
template <class T>
void add_sink_gradients(const Problem<T>& problem, const Upstream<T>& upstream, T* gradient) {
  const Shape& s = problem.shape;
  std::fill_n(gradient, s.heads, T(0));
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const int64_t i = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
    const T* grad = upstream.grad_context.row(b, h, i);
    const T* context = upstream.context.row(b, h, i);
    T slope = upstream.grad_lse == nullptr ? T(0) : upstream.grad_lse[row];
    for (int64_t e = 0; e < s.value_depth; ++e) slope -= grad[e] * context[e];
    gradient[h] += std::exp(problem.sinks[h] - upstream.lse[row]) * slope;
  }
}

template <class T>
void clear_bias_gradient(const Problem<T>& problem, T* gradient) {
  const Shape& s = problem.shape;
  const View<const T>& bias = problem.bias.dense;
  for (int64_t b = 0; b < (bias.batch_stride == 0 ? 1 : s.batch); ++b) {
    for (int64_t h = 0; h < (bias.head_stride == 0 ? 1 : s.heads); ++h) {
      for (int64_t i = 0; i < (bias.row_stride == 0 ? 1 : s.queries); ++i) {
        std::fill_n(gradient + (bias.row(b, h, i) - bias.data), s.keys, T(0));
      }
    }
  }
}

// Tasks that add to the same numbers of a bias gradient, those of one chunk, run one after another.
template <class T>
void run_backward_tasks(const BackwardPlan<T>& plan, int threads) {
  const BackwardTask<T> backward = backward_task<T>();
  const int64_t heads = plan.tasks() / plan.chunks;
  if (plan.gradients.bias == nullptr) {
    return run_tasks<T>(plan.tasks(), threads,
                        [&](int64_t task, Arena<T>& arena) { backward(plan, task, arena); });
  }
  run_tasks<T>(plan.chunks, threads, [&](int64_t chunk, Arena<T>& arena) {
    for (int64_t head = 0; head < heads; ++head) {
      arena.restart();
      backward(plan, head * plan.chunks + chunk, arena);
    }
  });
}

}  // namespace

template <class T>
void attention_forward(const Problem<T>& problem, const Result<T>& result, int threads) {
  check(problem);
  const Shape& s = problem.shape;
  AdditivePreparation<T> prepared(problem);
  if (!few_queries(s)) prepared.run(false, threads);
  const int64_t blocks = (s.queries + kForwardRows - 1) / kForwardRows;
  const int64_t splits = key_splits(s, blocks);
  const int64_t split_keys = (s.keys + splits - 1) / splits, rows = s.batch * s.heads * s.queries;
  Arena<T> partial;
  ForwardPlan<T> plan{&problem, prepared.plan(), result,  blocks,
                      splits,   split_keys,      nullptr, nullptr};
  if (splits > 1) {
    plan.partial_context = partial.take((splits - 1) * rows * s.value_depth);
    plan.partial_lse = partial.take(splits * rows);
    if (result.lse == nullptr) plan.result.lse = plan.partial_lse + (splits - 1) * rows;
  }
  const ForwardTask<T> forward = forward_task<T>();
  run_tasks<T>(plan.tasks(), threads,
               [&](int64_t task, Arena<T>& arena) { forward(plan, task, arena); });
  for (int64_t split = 1; split < splits; ++split) {
    merge(s, plan.result, plan.split_result(split));
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

template <class T>
void attention_weights(const Problem<T>& problem, const Compute<T>* lse, const Selection& selection,
                       const View<Compute<T>>& weights, int threads) {
  check(problem);
  if (selection.first_row < 0 || selection.rows < 0 ||
      selection.first_row + selection.rows > problem.shape.queries) {
    fail("[attention] rows {} to {} of the weights were asked for; there are {} queries",
         selection.first_row, selection.first_row + selection.rows, problem.shape.queries);
  }
  AdditivePreparation<T> prepared(problem);
  prepared.run(false, threads);
  const WeightsPlan<T> plan{&problem,       prepared.plan(), lse, selection.first_row,
                            selection.rows, weights};
  const WeightsTask<T> weigh = weights_task<T>();
  run_tasks<T>(plan.tasks(), threads,
               [&](int64_t task, Arena<T>& arena) { weigh(plan, task, arena); });
}

template <class T>
void attention_backward(const Problem<T>& problem, const Upstream<T>& upstream,
                        const Gradients<T>& gradients, int threads) {
  check(problem);
  AdditivePreparation<T> prepared(problem), natural(problem);
  prepared.run(false, threads);
  natural.run(true, threads);
  BackwardPlan<T> plan{&problem, prepared.plan(), natural.plan(), upstream, gradients, 1,
                       0,        nullptr,         nullptr,        nullptr};
  cut_keys(plan);
  const Shape& s = problem.shape;
  Arena<T> partial;
  plan.partial = partial.take((plan.chunks - 1) * query_count(s));
  if (problem.score.family == Family::additive) {
    plan.partial_vector = partial.take(s.batch * plan.chunks * s.heads * s.depth);
  }
  if (gradients.slopes != nullptr) {
    plan.partial_slopes = partial.take(s.batch * plan.chunks * s.heads);
  }
  if (gradients.bias != nullptr) clear_bias_gradient(problem, gradients.bias);
  run_backward_tasks(plan, threads);
  if (plan.chunks > 1) add_partial_gradients(plan, threads);
  add_partial(plan, plan.partial_vector, s.heads * s.depth, gradients.vector);
  add_partial(plan, plan.partial_slopes, s.heads, gradients.slopes);
  if (gradients.sinks != nullptr) add_sink_gradients(problem, upstream, gradients.sinks);
}

template void attention_forward(const Problem<float>&, const Result<float>&, int);
template void attention_forward(const Problem<double>&, const Result<double>&, int);
template void merge(const Shape&, const Result<float>&, const Result<float>&);
template void merge(const Shape&, const Result<double>&, const Result<double>&);
template void attention_weights(const Problem<float>&, const float*, const Selection&,
                                const View<float>&, int);
template void attention_weights(const Problem<double>&, const double*, const Selection&,
                                const View<double>&, int);
template void attention_backward(const Problem<float>&, const Upstream<float>&,
                                 const Gradients<float>&, int);
template void attention_backward(const Problem<double>&, const Upstream<double>&,
                                 const Gradients<double>&, int);

}  // namespace attend::kernels
