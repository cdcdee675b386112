#include <ATen/ATen.h>

#include "attend/ops/axes-inl.h"
#include "attend/ops/recurrence-inl.h"

namespace attend {
namespace {

using at::Tensor;
namespace argument = recurrence_input;

// Token by token; parts in the dtype of the arithmetic, with one query and key per head.
RecurrenceResult one_sequence(const RecurrenceInputs& x, const RecurrenceCall& call, Tensor state,
                              int64_t first, int64_t end) {
  std::vector<Tensor> outputs;
  outputs.reserve(static_cast<size_t>(end - first));
  for (int64_t t = first; t < end; ++t) {
    const auto token = [&](argument::Index index) { return x[index].select(2, t); };
    const Tensor key = token(argument::key).unsqueeze(-1);
    if (x[argument::decay].defined()) state = state * token(argument::decay).exp().unsqueeze(-1);
    Tensor update = token(argument::value);
    if (call.delta) update = update - (state * key).sum(-2);
    if (x[argument::strength].defined()) update = update * token(argument::strength);
    state = state + key * update.unsqueeze(-2);
    outputs.push_back((state * token(argument::query).unsqueeze(-1)).sum(-2));
  }
  if (outputs.empty()) return {x[argument::value].narrow(2, first, 0), state};
  return {at::stack(outputs, 2), state};
}

}  // namespace

Tensor l2_normalised(const Tensor& x) {
  return x * (x.square().sum(-1, /*keepdim=*/true) + l2_epsilon).rsqrt();
}

RecurrenceResult composed_recurrence(const RecurrenceInputs& parts, const RecurrenceCall& call) {
  const Tensor& value = parts[argument::value];
  const at::ScalarType stored = value.scalar_type();
  const at::ScalarType arithmetic = stored == at::kDouble ? at::kDouble : at::kFloat;
  RecurrenceInputs x = parts;
  const int64_t heads = value.size(1);
  for (const argument::Index index : {argument::query, argument::key}) {
    x[index] = repeat_heads(x[index].to(arithmetic), heads);
    if (call.l2_normalise) x[index] = l2_normalised(x[index]);
  }
  x[argument::query] = x[argument::query] * call.scale;
  x[argument::value] = value.to(arithmetic);
  const int64_t sequences = call.offsets.defined() ? call.offsets.size(0) - 1 : value.size(0);
  Tensor initial = parts[argument::initial];
  if (!initial.defined())
    initial = at::zeros({sequences, heads, x[argument::key].size(-1), value.size(-1)},
                        x[argument::value].options());
  if (!call.offsets.defined()) {
    const auto [output, state] = one_sequence(x, call, initial, 0, value.size(2));
    return {output.to(stored), state};
  }
  std::vector<Tensor> outputs, states;
  outputs.reserve(static_cast<size_t>(sequences));
  states.reserve(static_cast<size_t>(sequences));
  const auto* offsets = call.offsets.data_ptr<int64_t>();
  for (int64_t s = 0; s < sequences; ++s) {
    const auto [output, state] =
        one_sequence(x, call, initial.narrow(0, s, 1), offsets[s], offsets[s + 1]);
    outputs.push_back(output);
    states.push_back(state);
  }
  if (sequences == 0) return {x[argument::value].to(stored), initial};
  return {at::cat(outputs, 2).to(stored), at::cat(states, 0)};
}

}  // namespace attend
