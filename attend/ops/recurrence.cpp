#include "attend/ops/recurrence.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/kernels/recurrence.h"
#include "attend/ops/cpu_problem-inl.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/recurrence-inl.h"
#include "attend/ops/shape_text.h"
#include "attend/ops/twin_gradients.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
namespace argument = recurrence_input;
using Optional = c10::optional<Tensor>;

// The problem of the kernels; keeps the tensors that it points to.
template <class S>
struct KernelRecurrence {
  using T = kernels::Compute<S>;
  RecurrenceInputs parts;
  kernels::Recurrence<S> problem;

  KernelRecurrence(const RecurrenceInputs& given, const RecurrenceCall& call) : parts(given) {
    for (Tensor& x : parts) x = with_contiguous_rows(x);
    if (parts[argument::initial].defined())
      parts[argument::initial] = contiguous_numbers(parts[argument::initial]);
    const Tensor &value = parts[argument::value], &key = parts[argument::key];
    const Tensor& decay = parts[argument::decay];
    problem.shape = {value.size(0),
                     value.size(1),
                     key.size(1),
                     value.size(2),
                     key.size(3),
                     value.size(3),
                     decay.defined() ? decay.size(3) : 0};
    problem.query = view_of<S>(parts[argument::query]);
    problem.key = view_of<S>(key);
    problem.value = view_of<S>(value);
    problem.decay = view_of<T>(decay);
    problem.strength = view_of<T>(parts[argument::strength]);
    problem.initial = pointer_of<const T>(parts[argument::initial]);
    problem.delta = call.delta;
    problem.normalise = call.l2_normalise;
    problem.epsilon = l2_epsilon;
    problem.scale = call.scale;
    problem.offsets = pointer_of<const int64_t>(call.offsets);
    problem.sequences = sequences(call);
  }

  int64_t sequences(const RecurrenceCall& call) const {
    return call.offsets.defined() ? call.offsets.size(0) - 1 : parts[argument::value].size(0);
  }

  Tensor states(int64_t count) const {
    const auto& s = problem.shape;
    return at::empty({count, s.heads, s.depth, s.value_depth},
                     parts[argument::value].options().dtype(stored_type<T>));
  }
};

struct FusedResult {
  Tensor output, state, kept;
};

FusedResult run_forward(const RecurrenceInputs& parts, const RecurrenceCall& call, bool keep) {
  return with_storage(parts[argument::value].scalar_type(), [&]<class S>() -> FusedResult {
    using T = kernels::Compute<S>;
    const KernelRecurrence<S> x(parts, call);
    const auto& s = x.problem.shape;
    FusedResult result;
    result.output =
        at::empty({s.batch, s.heads, s.tokens, s.value_depth}, x.parts[argument::value].options());
    result.state = x.states(x.problem.sequences);
    if (keep) result.kept = at::empty({kernels::kept_numbers(x.problem)}, result.state.options());
    kernels::recurrence_forward<S>(
        x.problem,
        {view_of<S, S>(result.output), pointer_of<T>(result.state), pointer_of<T>(result.kept)},
        at::get_num_threads());
    return result;
  });
}

// Sums the gradients of the heads that share queries or keys.
Tensor summed_heads(const Tensor& gradient, int64_t key_heads) {
  if (gradient.size(1) == key_heads) return gradient;
  return gradient.unflatten(1, {key_heads, gradient.size(1) / key_heads}).sum(2);
}

RecurrenceInputs run_backward(const RecurrenceInputs& parts, const RecurrenceCall& call,
                              const Tensor& kept, const variable_list& upstream) {
  return with_storage(parts[argument::value].scalar_type(), [&]<class S>() -> RecurrenceInputs {
    using T = kernels::Compute<S>;
    const KernelRecurrence<S> x(parts, call);
    const auto& s = x.problem.shape;
    const auto like = [&](argument::Index index, int64_t depth) {
      const Tensor& input = x.parts[index];
      return input.defined() ? at::empty({s.batch, s.heads, s.tokens, depth}, input.options())
                             : Tensor();
    };
    RecurrenceInputs g = {
        like(argument::query, s.depth),       like(argument::key, s.depth),
        like(argument::value, s.value_depth), like(argument::decay, s.decay_depth),
        like(argument::strength, 1),          {}};
    if (x.parts[argument::initial].defined()) g[argument::initial] = x.states(x.problem.sequences);
    const Tensor grad_output = upstream[0].defined() ? with_contiguous_rows(upstream[0])
                                                     : at::zeros_like(g[argument::value]);
    const Tensor grad_state = upstream[1].defined() ? contiguous_numbers(upstream[1]) : Tensor();
    kernels::recurrence_backward<S>(
        x.problem,
        {view_of<S>(grad_output), pointer_of<const T>(grad_state), pointer_of<const T>(kept)},
        {view_of<S, S>(g[argument::query]), view_of<S, S>(g[argument::key]),
         view_of<S, S>(g[argument::value]), view_of<T, T>(g[argument::decay]),
         view_of<T, T>(g[argument::strength]), pointer_of<T>(g[argument::initial])},
        at::get_num_threads());
    g[argument::query] = summed_heads(g[argument::query], s.key_heads);
    g[argument::key] = summed_heads(g[argument::key], s.key_heads);
    return g;
  });
}

// Keeps the call for autograd.
struct KeptCall : torch::CustomClassHolder {
  explicit KeptCall(RecurrenceCall kept) : call(std::move(kept)) {}
  RecurrenceCall call;
};

class FusedRecurrence : public torch::autograd::Function<FusedRecurrence> {
 public:
  static variable_list forward(AutogradContext* context, const RecurrenceCall& call,
                               const Tensor& query, const Tensor& key, const Tensor& value,
                               const Optional& decay, const Optional& strength,
                               const Optional& initial) {
    const auto given = [](const Optional& x) { return x ? *x : Tensor(); };
    RecurrenceInputs parts = {query, key, value, given(decay), given(strength), given(initial)};
    const bool differentiated = std::any_of(parts.begin(), parts.end(), [](const Tensor& x) {
      return x.defined() && x.requires_grad();
    });
    const auto [output, state, kept] = run_forward(parts, call, differentiated);
    parts.push_back(kept);
    context->save_for_backward(std::move(parts));
    context->saved_data["call"] = c10::IValue::make_capsule(c10::make_intrusive<KeptCall>(call));
    context->set_materialize_grads(false);
    return {output, state};
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    variable_list parts = context->get_saved_variables();
    const Tensor kept = parts.back();
    parts.pop_back();
    const auto capsule = context->saved_data["call"].toCapsule();
    const RecurrenceCall& call = static_cast<const KeptCall&>(*capsule).call;
    const variable_list found = kernel_gradients(
        parts, upstream,
        [&call](const variable_list& own) -> variable_list {
          const auto [output, state] = composed_recurrence(own, call);
          return {output, state};
        },
        [&] { return run_backward(parts, call, kept, upstream); });
    variable_list gradients = {Tensor()};  // for the call
    gradients.insert(gradients.end(), found.begin(), found.end());
    return gradients;
  }
};

bool has_kernel(const RecurrenceInputs& parts) {
  return parts[argument::value].device().is_cpu() &&
         std::none_of(parts.begin(), parts.end(), has_forward_gradient);
}

RecurrenceResult fastest_recurrence(const RecurrenceInputs& parts, const RecurrenceCall& call) {
  if (!has_kernel(parts)) return composed_recurrence(parts, call);
  const auto optional = [&](argument::Index index) {
    return parts[index].defined() ? Optional(parts[index]) : Optional();
  };
  const variable_list results = FusedRecurrence::apply(
      call, parts[argument::query], parts[argument::key], parts[argument::value],
      optional(argument::decay), optional(argument::strength), optional(argument::initial));
  return {results[0], results[1]};
}

RecurrenceResult computed_by(RecurrenceFunction recurrence, const Tensor& query, const Tensor& key,
                             const Tensor& value, const RecurrenceSpec& spec) {
  RecurrenceCall call;
  const RecurrenceInputs parts = recurrence_inputs(query, key, value, spec, call);
  const WithoutAutocast no_autocast;
  if (!spec.bonus.defined()) return recurrence(parts, call);
  const bool wide = value.scalar_type() == at::kDouble;
  return with_bonus(parts, call, spec.bonus.to(wide ? at::kDouble : at::kFloat), recurrence);
}

}  // namespace

RecurrenceResult linear_recurrence(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const RecurrenceSpec& spec) {
  return computed_by(fastest_recurrence, query, key, value, spec);
}

Tensor recurrence_weights(const Tensor& query, const Tensor& key, const RecurrenceSpec& spec,
                          int64_t heads) {
  check_recurrence_array("query", query);
  check_recurrence_array("key", key);
  const int64_t tokens = key.size(2);
  RecurrenceSpec own = spec;
  own.initial = Tensor();
  const Tensor identity =
      at::eye(tokens, key.options()).expand({key.size(0), heads, tokens, tokens});
  return linear_recurrence(query, key, identity, own).output;
}

RecurrenceResult composed_recurrence(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const RecurrenceSpec& spec) {
  return computed_by(composed_recurrence, query, key, value, spec);
}

}  // namespace attend
