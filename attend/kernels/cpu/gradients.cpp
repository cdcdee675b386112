#include <algorithm>
#include <cmath>

#include "attend/kernels/check.h"
#include "attend/kernels/cpu/driver-inl.h"
#include "attend/kernels/cpu/edge_driver-inl.h"
#include "attend/kernels/cpu/gradient_sums-inl.h"

namespace attend::kernels {
namespace {

int64_t delta_count(const Shape& s) { return s.batch * s.heads * s.queries; }

// Which entries or heads of one chunk must take turns because they add to the same numbers.
struct Sharing {
  bool batch = false;
  bool heads = false;
};

template <class T>
Sharing sharing(const BackwardPlan<T>& plan) {
  const Shape& s = plan.problem->shape;
  const auto shared = [&](const T* gradient, const View<const T>& view) -> Sharing {
    if (gradient == nullptr) return {};
    return {view.batch_stride == 0 && s.batch > 1, view.head_stride == 0 && s.heads > 1};
  };
  const Sharing a = shared(plan.gradients.bias, plan.problem->bias.dense);
  const Sharing b = shared(plan.gradients.relative, plan.problem->bias.relative);
  return {a.batch || b.batch, a.heads || b.heads};
}

// Divides the keys into chunks for the threads if there are few heads. The number depends only on
// the shape; the order of sums is then independent of the threads.
template <class T>
void cut_keys(BackwardPlan<T>& plan) {
  constexpr int64_t kTasks = 8, kLeastKeys = 4 * kTileKeys;
  const Shape& s = plan.problem->shape;
  const Sharing turns = sharing(plan);
  const int64_t heads =
      std::max<int64_t>(1, (turns.batch ? 1 : s.batch) * (turns.heads ? 1 : s.key_heads));
  const int64_t wanted = std::min((kTasks + heads - 1) / heads, s.keys / kLeastKeys);
  const int64_t tiles = (s.keys + kTileKeys - 1) / kTileKeys;
  const int64_t chunks = std::max<int64_t>(1, wanted);
  plan.chunk_keys = std::clamp<int64_t>((tiles + chunks - 1) / chunks * kTileKeys, 1,
                                        std::max<int64_t>(1, s.keys));
  plan.chunks = std::max<int64_t>(1, (s.keys + plan.chunk_keys - 1) / plan.chunk_keys);
}

// Adds the query gradients of one block over the chunks that its queries see. With a local scope
// most chunks are not seen.
template <class T>
void add_block(const BackwardPlan<T>& plan, const Row& first) {
  const Shape& s = plan.problem->shape;
  const int64_t last = std::min(first.query + kBackwardRows, s.queries);
  const auto each_row = [&](const auto& change) {
    for (int64_t i = first.query; i < last; ++i)
      change(i, plan.gradients.query.row(first.batch, first.head, i));
  };
  if (!plan.sees_block(0, first.batch, first.head, first.query))
    each_row([&](int64_t, T* sum) { std::fill_n(sum, s.depth, T(0)); });
  for (int64_t chunk = 1; chunk < plan.chunks; ++chunk) {
    if (!plan.sees_block(chunk, first.batch, first.head, first.query)) continue;
    const View<T> from = plan.query_gradient(chunk);
    each_row([&](int64_t i, T* sum) {
      const T* add = from.row(first.batch, first.head, i);
      for (int64_t a = 0; a < s.depth; ++a) sum[a] += add[a];
    });
  }
}

template <class T>
void add_partial_gradients(const BackwardPlan<T>& plan, int threads) {
  const Shape& s = plan.problem->shape;
  run_tasks<T>(s.batch * s.heads, threads, [&](int64_t head, Arena<T>&) {
    for (int64_t i = 0; i < s.queries; i += kBackwardRows)
      add_block(plan, {head / s.heads, head % s.heads, i});
  });
}

template <class T>
void add_relative(const BackwardPlan<T>& plan) {
  const Shape& s = plan.problem->shape;
  const View<const T>& view = plan.problem->bias.relative;
  for (int64_t chunk = 1; chunk < plan.chunks; ++chunk) {
    for (int64_t b = 0; b < (view.batch_stride == 0 ? 1 : s.batch); ++b) {
      for (int64_t h = 0; h < (view.head_stride == 0 ? 1 : s.heads); ++h) {
        for (int64_t i = 0; i < (view.row_stride == 0 ? 1 : s.queries); ++i) {
          const int64_t row_offset = view.row(b, h, i) - view.data;
          const T* from = plan.relative_gradient(chunk) + row_offset;
          for (int64_t c = 0; c < plan.problem->bias.relative_count; ++c)
            plan.gradients.relative[row_offset + c] += from[c];
        }
      }
    }
  }
}

template <class T>
void add_products(const BackwardPlan<T>& plan, int threads) {
  const int64_t heads = plan.problem->shape.batch * plan.problem->shape.heads;
  if (plan.gradients.query_products == nullptr || heads == 0) return;
  const int64_t size = plan.product_size() / heads;
  run_tasks<T>(heads, threads, [&](int64_t head, Arena<T>&) {
    T* const sum = plan.gradients.query_products + head * size;
    for (int64_t chunk = 1; chunk < plan.chunks; ++chunk) {
      const T* from = plan.product_gradient(chunk) + head * size;
      for (int64_t n = 0; n < size; ++n) sum[n] += from[n];
    }
  });
}

// A thread processes everything that must take turns, in order.
template <class T>
void run_backward_tasks(const BackwardPlan<T>& plan, int threads) {
  const BackwardTask<T> backward = backward_task<T>();
  const Shape& s = plan.problem->shape;
  const Sharing turns = sharing(plan);
  const int64_t batches = turns.batch ? s.batch : 1, heads = turns.heads ? s.key_heads : 1;
  const int64_t free_batches = turns.batch ? 1 : s.batch,
                free_heads = s.key_heads / std::max<int64_t>(1, heads);
  run_tasks<T>(free_batches * free_heads * plan.chunks, threads, [&](int64_t n, Arena<T>& arena) {
    const int64_t chunk = n % plan.chunks, head = n / plan.chunks % free_heads;
    const int64_t batch = n / plan.chunks / free_heads;
    for (int64_t turn = 0; turn < batches * heads; ++turn) {
      const int64_t b = batch + turn / heads, h = head + turn % heads;
      arena.restart();
      backward(plan, (b * s.key_heads + h) * plan.chunks + chunk, arena);
    }
  });
}

// Takes memory for the partial sums of each chunk.
template <class T>
void take_partials(BackwardPlan<T>& plan, Arena<T>& arena) {
  const Shape& s = plan.problem->shape;
  const Gradients<T>& to = plan.gradients;
  const Bias<T>& bias = plan.problem->bias;
  plan.partial = arena.take((plan.chunks - 1) * delta_count(s) * s.depth);
  if (plan.problem->score.family == Family::additive)
    plan.partial_vector = arena.take(s.batch * plan.chunks * s.heads * s.depth);
  if (to.slopes != nullptr) plan.partial_slopes = arena.take(s.batch * plan.chunks * s.heads);
  const int64_t rows = plan.chunks * delta_count(s);
  if (to.centres != nullptr) plan.partial_centres = arena.take(rows);
  if (to.widths != nullptr) plan.partial_widths = arena.take(rows);
  if (plan.partial_centres != nullptr) std::fill_n(plan.partial_centres, rows, T(0));
  if (plan.partial_widths != nullptr) std::fill_n(plan.partial_widths, rows, T(0));
  if (to.bias != nullptr) clear_gradient(s, bias.dense, s.keys, to.bias);
  if (to.query_products != nullptr) {
    plan.partial_products = arena.take((plan.chunks - 1) * plan.product_size());
    for (int64_t chunk = 0; chunk < plan.chunks; ++chunk)
      std::fill_n(plan.product_gradient(chunk), plan.product_size(), T(0));
  }
  // A chunk adds to the products of its own keys only.
  if (to.key_products != nullptr)
    std::fill_n(to.key_products, s.batch * s.heads * s.keys * bias.product_columns, T(0));
  if (to.relative == nullptr) return;
  const View<const T>& view = bias.relative;
  const auto last = [](int64_t size) { return std::max<int64_t>(size, 1) - 1; };
  plan.relative_size =
      view.row(last(s.batch), last(s.heads), last(s.queries)) - view.data + bias.relative_count;
  plan.partial_relative = arena.take((plan.chunks - 1) * plan.relative_size);
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk)
    clear_gradient(s, view, bias.relative_count, plan.relative_gradient(chunk));
}

template <class T>
void add_all_parts(const BackwardPlan<T>& plan) {
  const Shape& s = plan.problem->shape;
  const Gradients<T>& to = plan.gradients;
  const int64_t parts = s.batch * plan.chunks;
  add_parts(plan.partial_vector, parts, s.heads * s.depth, to.vector);
  add_parts(plan.partial_slopes, parts, s.heads, to.slopes);
  add_parts(plan.partial_centres, plan.chunks, delta_count(s), to.centres);
  add_parts(plan.partial_widths, plan.chunks, delta_count(s), to.widths);
  add_parts(plan.partial_query_sums, plan.chunks, delta_count(s), to.query_sums);
}

// Whether a pass over whole rows precedes: the first chunk of an ordered normaliser that has one
// needs nothing of others.
template <class T>
bool needs_deltas(const BackwardPlan<T>& plan) {
  const Normaliser normaliser = plan.problem->normaliser;
  return is_sparse(normaliser) || (is_ordered(normaliser) && plan.chunks > 1);
}

template <class T>
void run_backward(const Problem<T>& problem, const Upstream<T>& upstream,
                  const Gradients<T>& gradients, const BFloat16Plan& bfloat16, int threads) {
  if (const auto scope = edge_scope(problem.scope))
    return edge_backward(problem, *scope, upstream, gradients, threads);
  const Shape& s = problem.shape;
  AdditivePreparation<T> prepared(problem), natural(problem);
  if (!few_queries(s)) {
    prepared.run(false, threads);
    natural.run(true, threads);
  }
  BackwardPlan<T> plan{};
  plan.problem = &problem;
  plan.additive = prepared.plan();
  plan.natural = natural.plan();
  plan.bfloat16 = bfloat16;
  plan.upstream = upstream;
  plan.gradients = gradients;
  cut_keys(plan);
  Arena<T> partial;
  take_partials(plan, partial);
  std::vector<double> query_sums;
  if (gradients.query_sums != nullptr) {
    query_sums.resize(static_cast<size_t>(plan.chunks * delta_count(s)));
    plan.partial_query_sums = query_sums.data();
  }
  // A chunk adds to the sums of its own keys only.
  if (gradients.key_sums != nullptr)
    std::fill_n(gradients.key_sums, s.batch * s.heads * s.keys, 0.0);
  std::vector<uint8_t> sees(static_cast<size_t>(plan.chunks * s.batch * s.heads * plan.blocks()));
  plan.sees = sees.data();
  if (needs_deltas(plan)) {
    const int64_t count = (is_ordered(problem.normaliser) ? plan.chunks : 1) * delta_count(s);
    plan.deltas = partial.take(count);
    plan.shifts = {partial.take(count), partial.take(count)};
    if (gradients.alphas != nullptr) plan.by_alpha = partial.take(delta_count(s));
    const BackwardPlan<T> first = plan;
    const BackwardTask<T> deltas = delta_task<T>();
    run_tasks<T>(s.batch * s.heads * plan.blocks(), threads,
                 [&](int64_t task, Arena<T>& arena) { deltas(first, task, arena); });
  } else {
    SummaryPlan<T> rows{};
    rows.problem = &problem;
    rows.additive = plan.additive;
    rows.bfloat16 = bfloat16;
    rows.lse = upstream.lse;
    rows.selection.rows = s.queries;
    plan.shifts = find_shifts(rows, partial, threads);
  }
  run_backward_tasks(plan, threads);
  add_partial_gradients(plan, threads);
  if (plan.relative_size > 0) add_relative(plan);
  add_products(plan, threads);
  add_all_parts(plan);
  if (gradients.sinks != nullptr)
    add_sink_gradients(problem, upstream, plan.shifts, gradients.sinks);
  add_rows_of_heads(s, plan.by_alpha, gradients.alphas);
}

}  // namespace

template <class S>
void attention_backward(const Problem<S>& problem, const Upstream<S>& upstream,
                        const Gradients<S>& gradients, int threads) {
  check(problem, upstream, gradients);
  threads = worthwhile_threads(problem.shape, threads);
  if constexpr (kIsHalf<S>) {
    Arena<float> arena;
    const Shape& s = problem.shape;
    const BFloat16Preparation bfloat16(problem, &upstream.grad_context, threads);
    const Problem<float> wide = widen_problem(problem, arena, threads, !bfloat16.used());
    const Upstream<float> above{upstream.context, upstream.lse,
                                widen_rows(context_rows(s), upstream.grad_context, arena, threads),
                                upstream.grad_lse};
    const auto room = [&](const RowsOf& rows) {
      return contiguous(arena.take(rows.size()), rows.heads, rows.rows, rows.depth);
    };
    const Gradients<float> below{
        room(query_rows(s)), room(key_rows(s)), room(value_rows(s)),      gradients.vector,
        gradients.bias,      gradients.slopes,  gradients.sinks,          gradients.relative,
        gradients.centres,   gradients.widths,  gradients.edges,          gradients.query_sums,
        gradients.key_sums,  gradients.alphas,  gradients.query_products, gradients.key_products};
    run_backward(wide, above, below, bfloat16.plan(), threads);
    narrow_rows(query_rows(s), below.query, gradients.query, threads);
    narrow_rows(key_rows(s), below.key, gradients.key, threads);
    narrow_rows(value_rows(s), below.value, gradients.value, threads);
  } else {
    run_backward(problem, upstream, gradients, {}, threads);
  }
}

template void attention_backward(const Problem<float>&, const Upstream<float>&,
                                 const Gradients<float>&, int);
template void attention_backward(const Problem<double>&, const Upstream<double>&,
                                 const Gradients<double>&, int);
template void attention_backward(const Problem<BFloat16>&, const Upstream<BFloat16>&,
                                 const Gradients<BFloat16>&, int);
template void attention_backward(const Problem<Float16>&, const Upstream<Float16>&,
                                 const Gradients<Float16>&, int);

}  // namespace attend::kernels
