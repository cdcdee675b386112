#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/recurrence_backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/recurrence_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Arrays of a segment: the state before each chunk, and the updates of its tokens.
template <class T>
struct SegmentArrays {
  T *states, *updates, *unscaled;

  SegmentArrays(const RecurrencePlan<T>& plan, int64_t value_columns, Arena<T>& arena)
      : states(arena.take((plan.segment / plan.chunk + 1) * plan.shape.depth * value_columns)),
        updates(arena.take(plan.segment * value_columns)),
        unscaled(arena.take(plan.segment * value_columns)) {}
};

// The tokens [begin, end) from the kept state before them, then backwards.
template <class T>
void SegmentGradients(const RecurrencePlan<T>& plan, RecurrenceChunk<T>& chunk,
                      RecurrenceGradient<T>& gradient, const SegmentArrays<T>& arrays,
                      int64_t begin, int64_t end, T* grad_state) {
  const int64_t width = chunk.value_columns, size = plan.shape.depth * width;
  const int64_t chunks = (end - begin + plan.chunk - 1) / plan.chunk;
  T* const own_update = chunk.update;
  const StoredRows<T>& values = plan.delta ? plan.kept_updates : plan.value;
  const auto load = [&](int64_t c) {
    const int64_t first = begin + c * plan.chunk;
    chunk.load_keys(first, std::min(plan.chunk, end - first));
    chunk.update = arrays.updates + c * plan.chunk * width;
    return first;
  };
  for (int64_t c = 0; c < chunks; ++c) {
    T* const state = arrays.states + c * size;
    T* const unscaled = arrays.unscaled + c * plan.chunk * width;
    const int64_t first = load(c), next = first + chunk.n;
    chunk.ahead.restart();
    chunk.fetch(next, std::min(plan.chunk, end - next), values);
    chunk.ahead.divide(ProductSteps<T>(plan.shape.depth, width));
    if (plan.delta) {
      chunk.load_updates(first, unscaled);
    } else {
      chunk.load_values(first);
      chunk.find_updates(state, unscaled);
    }
    if (c + 1 == chunks) break;
    chunk.advance(state, state + size);
  }
  for (int64_t c = chunks - 1; c >= 0; --c) {
    const int64_t first = load(c);
    chunk.load_queries(first);
    chunk.ahead.restart();
    gradient.fetch(first);
    if (first == begin && begin > 0) chunk.fetch(begin - plan.segment, plan.chunk, values);
    chunk.ahead.divide(4 * ProductSteps<T>(chunk.n, chunk.columns) +
                       ProductSteps<T>(plan.shape.depth, width));
    chunk.find_pairs();
    gradient.run(first, arrays.states + c * size, arrays.unscaled + c * plan.chunk * width,
                 grad_state);
  }
  chunk.update = own_update;
}

template <class T>
void RecurrenceBackward(const RecurrencePlan<T>& plan, int64_t task, Arena<T>& arena) {
  const RecurrenceTokens<T> tokens(plan, task);
  RecurrenceChunk<T> chunk(plan, tokens, arena);
  RecurrenceGradient<T> gradient(plan, tokens, chunk, arena);
  const int64_t width = chunk.value_columns, size = plan.state_size();
  const SegmentArrays<T> arrays(plan, width, arena);
  T* const grad_state = arena.take(plan.shape.depth * width);
  LoadState(plan, plan.grad_last == nullptr ? nullptr : plan.grad_last + task * size, grad_state,
            width);
  for (int64_t segment = (tokens.count - 1) / plan.segment; segment >= 0 && tokens.count > 0;
       --segment) {
    LoadState(plan, plan.kept + (tokens.kept + segment) * size, arrays.states, width);
    const int64_t begin = segment * plan.segment;
    SegmentGradients(plan, chunk, gradient, arrays, begin,
                     std::min(tokens.count, begin + plan.segment), grad_state);
  }
  if (plan.grad_initial != nullptr)
    StoreState(plan, grad_state, width, plan.grad_initial + task * size);
}

void RecurrenceBackwardFloat(const RecurrencePlan<float>& plan, int64_t task, Arena<float>& arena) {
  RecurrenceBackward(plan, task, arena);
}

void RecurrenceBackwardDouble(const RecurrencePlan<double>& plan, int64_t task,
                              Arena<double>& arena) {
  RecurrenceBackward(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(RecurrenceBackwardFloat);
HWY_EXPORT(RecurrenceBackwardDouble);

template <>
RecurrenceTask<float> recurrence_backward_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(RecurrenceBackwardFloat);
}

template <>
RecurrenceTask<double> recurrence_backward_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(RecurrenceBackwardDouble);
}

}  // namespace attend::kernels
#endif
