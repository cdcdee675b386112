#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/recurrence_forward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/recurrence-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// One token passes through kV vectors of columns of the state:
// S <- e^g S, u = b (v - S^T k), S <- S + k u^T, o = S^T q
template <int kV, class T>
HWY_INLINE void StepColumns(const RecurrenceChunk<T>& x, bool delta, const T* before, T* after,
                            int64_t c, T* output) {
  const Tag<T> d;
  const int64_t stride = x.value_columns;
  Vec<T> update[kV], sum[kV];
#pragma GCC unroll 4
  for (int v = 0; v < kV; ++v) {
    update[v] = hn::Load(d, x.value + c + v * kLanes<T>);
    sum[v] = hn::Zero(d);
  }
  // The decayed key reads the state before its decay.
  for (int64_t a = 0; delta && a < x.depth; ++a) {
    const auto k = Set<T>(x.key_in[a]);
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v)
      update[v] =
          hn::NegMulAdd(k, hn::LoadU(d, before + a * stride + c + v * kLanes<T>), update[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kV; ++v) update[v] = hn::Mul(update[v], Set<T>(x.strength[0]));
  for (int64_t a = 0; a < x.depth; ++a) {
    const auto k = Set<T>(x.key[a]), q = Set<T>(x.query[a]);
    const T* f = x.factor + (x.decay_columns == 1 ? 0 : a);
    const T* const from = before + a * stride + c;
    T* const to = after + a * stride + c;
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      auto s = hn::LoadU(d, from + v * kLanes<T>);
      if (x.decays()) s = hn::Mul(s, Set<T>(*f));
      s = hn::MulAdd(k, update[v], s);
      sum[v] = hn::MulAdd(q, s, sum[v]);
      hn::StoreU(s, d, to + v * kLanes<T>);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kV; ++v) hn::Store(sum[v], d, output + c + v * kLanes<T>);
}

template <class T>
void Step(const RecurrenceChunk<T>& x, bool delta, const T* before, T* after, T* output) {
  int64_t c = 0;
  for (; c + 4 * kLanes<T> <= x.value_columns; c += 4 * kLanes<T>)
    StepColumns<4>(x, delta, before, after, c, output);
  for (; c < x.value_columns; c += kLanes<T>) StepColumns<1>(x, delta, before, after, c, output);
}

// One token after others, as in decoding: reads and writes the state once, without a copy.
template <class T>
void OneStep(const RecurrencePlan<T>& plan, int64_t task, Arena<T>& arena) {
  const RecurrenceTokens<T> tokens(plan, task);
  RecurrenceChunk<T> chunk(plan, tokens, arena);
  T* const output = arena.take(chunk.value_columns);
  chunk.load(0, 1);
  Step(chunk, plan.delta, plan.initial + task * plan.state_size(),
       plan.last + task * plan.state_size(), output);
  plan.output.store(output, chunk.value_columns, tokens.batch, tokens.head, tokens.first, 1,
                    plan.shape.value_depth);
}

template <class T>
void RecurrenceForward(const RecurrencePlan<T>& plan, int64_t task, Arena<T>& arena) {
  const RecurrenceTokens<T> tokens(plan, task);
  // Only after a state: a sequence of one token has the bits that it has in a padded batch.
  const bool step = tokens.count == 1 && plan.initial != nullptr;
  if (step && plan.last != nullptr && plan.kept == nullptr &&
      plan.shape.value_depth % kLanes<T> == 0)
    return OneStep(plan, task, arena);
  RecurrenceChunk<T> chunk(plan, tokens, arena);
  const int64_t columns = chunk.value_columns, size = plan.state_size();
  T* const state = arena.take(plan.shape.depth * columns);
  T* const output = arena.take(plan.chunk * columns);
  const bool keep_updates = plan.kept != nullptr && plan.delta;
  T* const unscaled = keep_updates ? arena.take(plan.chunk * columns) : nullptr;
  LoadState(plan, plan.initial == nullptr ? nullptr : plan.initial + task * size, state, columns);
  for (int64_t first = 0; first < tokens.count; first += plan.chunk) {
    if (plan.kept != nullptr && first % plan.segment == 0)
      StoreState(plan, state, columns, plan.kept + (tokens.kept + first / plan.segment) * size);
    chunk.load(first, std::min(plan.chunk, tokens.count - first));
    const int64_t next = first + chunk.n;
    chunk.ahead.restart();
    chunk.fetch(next, std::min(plan.chunk, tokens.count - next), plan.value);
    plan.output.fetch(tokens.batch, tokens.head, tokens.first + first, chunk.n,
                      plan.shape.value_depth, chunk.ahead);
    plan.kept_updates.fetch(tokens.batch, tokens.head, tokens.first + first, chunk.n,
                            plan.shape.value_depth, chunk.ahead);
    chunk.ahead.divide(2 * ProductSteps<T>(chunk.n, columns) +
                       ProductSteps<T>(plan.shape.depth, columns));
    if (!step) chunk.find_pairs();
    if (!step || keep_updates) chunk.find_updates(state, unscaled);
    if (step) {
      Step(chunk, plan.delta, state, state, output);
    } else {
      chunk.find_output(state, output);
      chunk.advance(state, state);
    }
    if (keep_updates)
      plan.kept_updates.store(unscaled, columns, tokens.batch, tokens.head, tokens.first + first,
                              chunk.n, plan.shape.value_depth);
    plan.output.store(output, columns, tokens.batch, tokens.head, tokens.first + first, chunk.n,
                      plan.shape.value_depth);
  }
  if (plan.last != nullptr) StoreState(plan, state, columns, plan.last + task * size);
}

void RecurrenceForwardFloat(const RecurrencePlan<float>& plan, int64_t task, Arena<float>& arena) {
  RecurrenceForward(plan, task, arena);
}

void RecurrenceForwardDouble(const RecurrencePlan<double>& plan, int64_t task,
                             Arena<double>& arena) {
  RecurrenceForward(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(RecurrenceForwardFloat);
HWY_EXPORT(RecurrenceForwardDouble);

template <>
RecurrenceTask<float> recurrence_forward_task<float>() {
  return &HWY_DYNAMIC_DISPATCH(RecurrenceForwardFloat);
}

template <>
RecurrenceTask<double> recurrence_forward_task<double>() {
  return &HWY_DYNAMIC_DISPATCH(RecurrenceForwardDouble);
}

}  // namespace attend::kernels
#endif
