#include "attend/kernels/recurrence.h"

#include <cmath>

#include "attend/base/error.h"
#include "attend/kernels/cpu/driver-inl.h"
#include "attend/kernels/cpu/recurrence_plan-inl.h"

namespace attend::kernels {
namespace {

void check_sizes(const RecurrenceShape& s) {
  const std::pair<const char*, int64_t> sizes[] = {{"batch", s.batch},
                                                   {"heads", s.heads},
                                                   {"tokens", s.tokens},
                                                   {"depth", s.depth},
                                                   {"value_depth", s.value_depth}};
  for (const auto& [name, size] : sizes) {
    if (size < 0) fail("[recurrence] shape.{} is {}; sizes must not be negative", name, size);
  }
  if (s.heads > 0 && (s.key_heads < 1 || s.heads % s.key_heads != 0))
    fail("[recurrence] shape.key_heads is {}; it must divide shape.heads, {}", s.key_heads,
         s.heads);
  if (s.decay_depth != 0 && s.decay_depth != 1 && s.decay_depth != s.depth)
    fail("[recurrence] shape.decay_depth is {}; it must be 0, 1 or shape.depth, {}", s.decay_depth,
         s.depth);
  const auto columns = static_cast<double>(std::max(s.depth, s.value_depth)) + 64;
  const auto heads = static_cast<double>(s.batch) * static_cast<double>(s.heads);
  const double numbers = heads * std::max(static_cast<double>(s.tokens), columns) * columns;
  if (numbers > 0x1p60) fail("[recurrence] shape has {:.3g} numbers; at most 2^60 fit", numbers);
}

template <class S>
void check_offsets(const Recurrence<S>& p) {
  if (p.offsets == nullptr) return;
  if (p.shape.batch != 1)
    fail("[recurrence] shape.batch is {}; with offsets it must be 1", p.shape.batch);
  if (p.sequences < 0) fail("[recurrence] sequences is {}; it must not be negative", p.sequences);
  const int64_t last = p.offsets[p.sequences];
  if (p.offsets[0] != 0 || last != p.shape.tokens)
    fail("[recurrence] offsets go from {} to {}; they must go from 0 to the number of tokens, {}",
         p.offsets[0], last, p.shape.tokens);
  for (int64_t s = 0; s < p.sequences; ++s) {
    if (p.offsets[s] > p.offsets[s + 1])
      fail("[recurrence] offsets[{}] is {}, after {}; offsets must not fall", s + 1,
           p.offsets[s + 1], p.offsets[s]);
  }
}

void check_numbers(const char* name, const void* data, int64_t count) {
  if (data == nullptr && count > 0)
    fail("[recurrence] {} is null; it must point to {} numbers", name, count);
}

template <class S>
void check(const Recurrence<S>& p) {
  const RecurrenceShape& s = p.shape;
  check_sizes(s);
  check_offsets(p);
  const int64_t rows = s.batch * s.heads * s.tokens;
  check_numbers("query", p.query.data, rows * s.depth);
  check_numbers("key", p.key.data, rows * s.depth);
  check_numbers("value", p.value.data, rows * s.value_depth);
  check_numbers("decay", p.decay.data, rows * s.decay_depth);
  if (p.chunk < 0) fail("[recurrence] chunk is {}; it must not be negative", p.chunk);
  if (!std::isfinite(p.scale)) fail("[recurrence] scale is {}; it must be finite", p.scale);
  if (!(p.epsilon >= 0)) fail("[recurrence] epsilon is {}; it must not be negative", p.epsilon);
}

template <class S>
RecurrencePlan<Compute<S>> plan_of(const Recurrence<S>& p) {
  using T = Compute<S>;
  RecurrencePlan<T> plan;
  plan.shape = p.shape;
  plan.query = StoredRows<T>(p.query);
  plan.key = StoredRows<T>(p.key);
  plan.value = StoredRows<T>(p.value);
  plan.decay = p.decay;
  plan.strength = p.strength;
  plan.initial = p.initial;
  plan.delta = p.delta;
  plan.normalise = p.normalise;
  plan.scale = static_cast<T>(p.scale);
  plan.epsilon = static_cast<T>(p.epsilon);
  plan.offsets = p.offsets;
  plan.sequences = p.offsets == nullptr ? p.shape.batch : p.sequences;
  plan.chunk = p.chunk > 0 ? p.chunk : kChunk;
  plan.segment = (kSegment + plan.chunk - 1) / plan.chunk * plan.chunk;
  return plan;
}

// Each token decays, updates and reads the state.
int threads_for(const RecurrenceShape& s, int threads) {
  return worthwhile_threads({3, s.batch, s.heads, s.tokens, s.depth, s.value_depth}, threads);
}

template <class T>
void set_kept(RecurrencePlan<T>& plan, T* kept) {
  const RecurrenceShape& s = plan.shape;
  plan.kept = kept;
  if (!plan.delta) return;
  T* const updates = kept == nullptr ? nullptr : kept + plan.kept_states() * plan.state_size();
  plan.kept_updates = StoredRows<T>(contiguous(updates, s.heads, s.tokens, s.value_depth));
}

}  // namespace

template <class S>
int64_t kept_numbers(const Recurrence<S>& p) {
  const auto plan = plan_of(p);
  const RecurrenceShape& s = p.shape;
  const int64_t updates = p.delta ? s.batch * s.heads * s.tokens * s.value_depth : 0;
  return plan.kept_states() * plan.state_size() + updates;
}

template <class S>
void recurrence_forward(const Recurrence<S>& problem, const RecurrenceResult<S>& result,
                        int threads) {
  check(problem);
  const RecurrenceShape& s = problem.shape;
  check_numbers("output", result.output.data, s.batch * s.heads * s.tokens * s.value_depth);
  auto plan = plan_of(problem);
  plan.output = StoredRows<Compute<S>>(result.output);
  plan.last = result.last;
  set_kept(plan, result.kept);
  const auto forward = recurrence_forward_task<Compute<S>>();
  run_tasks<Compute<S>>(plan.tasks(), threads_for(s, threads),
                        [&](int64_t task, auto& arena) { forward(plan, task, arena); });
}

template <class S>
void recurrence_backward(const Recurrence<S>& problem, const RecurrenceUpstream<S>& upstream,
                         const RecurrenceGradients<S>& gradients, int threads) {
  using T = Compute<S>;
  check(problem);
  const RecurrenceShape& s = problem.shape;
  const int64_t rows = s.batch * s.heads * s.tokens;
  check_numbers("grad_output", upstream.grad_output.data, rows * s.value_depth);
  check_numbers("kept", upstream.kept, kept_numbers(problem));
  check_numbers("the gradient of query", gradients.query.data, rows * s.depth);
  check_numbers("the gradient of key", gradients.key.data, rows * s.depth);
  check_numbers("the gradient of value", gradients.value.data, rows * s.value_depth);
  auto plan = plan_of(problem);
  set_kept(plan, const_cast<T*>(upstream.kept));
  plan.grad_output = StoredRows<T>(upstream.grad_output);
  plan.grad_last = upstream.grad_last;
  plan.grad_query = StoredRows<T>(gradients.query);
  plan.grad_key = StoredRows<T>(gradients.key);
  plan.grad_value = StoredRows<T>(gradients.value);
  if (s.decay_depth > 0) plan.grad_decay = gradients.decay;
  plan.grad_strength = gradients.strength;
  plan.grad_initial = gradients.initial;
  const auto backward = recurrence_backward_task<T>();
  run_tasks<T>(plan.tasks(), threads_for(s, threads),
               [&](int64_t task, Arena<T>& arena) { backward(plan, task, arena); });
}

#define ATTEND_RECURRENCE(S)                                                               \
  template int64_t kept_numbers(const Recurrence<S>&);                                     \
  template void recurrence_forward(const Recurrence<S>&, const RecurrenceResult<S>&, int); \
  template void recurrence_backward(const Recurrence<S>&, const RecurrenceUpstream<S>&,    \
                                    const RecurrenceGradients<S>&, int);
ATTEND_RECURRENCE(float)
ATTEND_RECURRENCE(double)
ATTEND_RECURRENCE(BFloat16)
ATTEND_RECURRENCE(Float16)
#undef ATTEND_RECURRENCE

}  // namespace attend::kernels
