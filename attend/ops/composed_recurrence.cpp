#include <ATen/ATen.h>

#include "attend/ops/axes-inl.h"
#include "attend/ops/recurrence-inl.h"

namespace attend {
namespace {

using at::Tensor;
namespace input = recurrence_input;

// Token by token; parts in the dtype of the arithmetic, with one query and key per head.
RecurrenceResult one_sequence(const RecurrenceInputs& x, const RecurrencePlan& plan, Tensor state,
                              int64_t first, int64_t end) {
  std::vector<Tensor> outputs;
  outputs.reserve(static_cast<size_t>(end - first));
  for (int64_t t = first; t < end; ++t) {
    const auto token = [&](input::Index index) { return x[index].select(2, t); };
    const Tensor key = token(input::key).unsqueeze(-1);
    if (x[input::decay].defined()) state = state * token(input::decay).exp().unsqueeze(-1);
    Tensor update = token(input::value);
    if (plan.delta) update = update - (state * key).sum(-2);
    if (x[input::strength].defined()) update = update * token(input::strength);
    state = state + key * update.unsqueeze(-2);
    outputs.push_back((state * token(input::query).unsqueeze(-1)).sum(-2));
  }
  if (outputs.empty()) return {x[input::value].narrow(2, first, 0), state};
  return {at::stack(outputs, 2), state};
}

Tensor normalised(const Tensor& x) {
  return x * (x.square().sum(-1, /*keepdim=*/true) + l2_epsilon).rsqrt();
}

}  // namespace

RecurrenceResult composed_recurrence(const RecurrenceInputs& parts, const RecurrencePlan& plan) {
  const Tensor& value = parts[input::value];
  const at::ScalarType stored = value.scalar_type();
  const at::ScalarType arithmetic = stored == at::kDouble ? at::kDouble : at::kFloat;
  RecurrenceInputs x = parts;
  const int64_t heads = value.size(1);
  for (const input::Index index : {input::query, input::key}) {
    x[index] = repeat_heads(x[index].to(arithmetic), heads);
    if (plan.l2_normalise) x[index] = normalised(x[index]);
  }
  x[input::query] = x[input::query] * plan.scale;
  x[input::value] = value.to(arithmetic);
  const int64_t sequences = plan.offsets.defined() ? plan.offsets.size(0) - 1 : value.size(0);
  Tensor initial = parts[input::initial];
  if (!initial.defined())
    initial = at::zeros({sequences, heads, x[input::key].size(-1), value.size(-1)},
                        x[input::value].options());
  if (!plan.offsets.defined()) {
    const auto [output, state] = one_sequence(x, plan, initial, 0, value.size(2));
    return {output.to(stored), state};
  }
  std::vector<Tensor> outputs, states;
  outputs.reserve(static_cast<size_t>(sequences));
  states.reserve(static_cast<size_t>(sequences));
  const auto* offsets = plan.offsets.data_ptr<int64_t>();
  for (int64_t s = 0; s < sequences; ++s) {
    const auto [output, state] =
        one_sequence(x, plan, initial.narrow(0, s, 1), offsets[s], offsets[s + 1]);
    outputs.push_back(output);
    states.push_back(state);
  }
  if (sequences == 0) return {x[input::value].to(stored), initial};
  return {at::cat(outputs, 2).to(stored), at::cat(states, 0)};
}

}  // namespace attend
