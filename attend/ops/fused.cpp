#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "attend/base/error.h"
#include "attend/ops/kernel_problem-inl.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What autograd takes for a tensor that may be absent.
using Optional = c10::optional<Tensor>;

// The tensors that a condition of the scope holds.
variable_list tensors_of(const KeyLengths& condition) { return {condition.lengths}; }
variable_list tensors_of(const Segments& segments) {
  return {segments.query_starts, segments.key_starts};
}
variable_list tensors_of(const BlockLayout& blocks) { return {blocks.layout}; }
variable_list tensors_of(const DenseMask& condition) { return {condition.mask}; }
variable_list tensors_of(const Around& condition) { return {condition.centres}; }
template <class WithoutTensors>
variable_list tensors_of(const WithoutTensors&) {
  return {};
}

void append_tensors(const Scope& scope, variable_list& tensors) {
  for (const Clause& clause : scope.any_of) {
    for (const Condition& condition : clause) {
      const variable_list own =
          std::visit([](const auto& one) { return tensors_of(one); }, condition);
      tensors.insert(tensors.end(), own.begin(), own.end());
    }
  }
}

Parts parts_of(const variable_list& tensors) {
  Parts parts;
  std::copy_n(tensors.begin(), part::count, parts.begin());
  return parts;
}

variable_list run_forward(const Parts& parts, const LoweredSpec& spec) {
  return with_storage(parts[part::query].scalar_type(), [&]<class S>() -> variable_list {
    using T = kernels::Compute<S>;
    const KernelInputs inputs(parts, spec);
    const Tensor& query = parts[part::query];
    const int64_t depth = parts[part::value].size(-1);
    const Tensor context =
        at::empty({spec.batch, spec.heads, spec.queries, depth}, query.options());
    const Tensor lse =
        at::empty({spec.batch, spec.heads, spec.queries}, query.options().dtype(stored_type<T>));
    kernels::attention_forward<S>(
        inputs.problem<S>(spec),
        {kernels::contiguous(pointer_of<S>(context), spec.heads, spec.queries, depth),
         pointer_of<T>(lse)},
        at::get_num_threads());
    return {context, lse};
  });
}

// Gradients of the parts where `wanted`; queries, keys and values always have one.
variable_list run_backward(const Parts& parts, const LoweredSpec& spec, const Tensor& context,
                           const Tensor& lse, const variable_list& upstream,
                           const std::array<bool, part::count>& wanted) {
  return with_storage(parts[part::query].scalar_type(), [&]<class S>() -> variable_list {
    using T = kernels::Compute<S>;
    const KernelInputs inputs(parts, spec);
    const Tensor grad_context =
        upstream[0].defined() ? with_contiguous_rows(upstream[0]) : at::zeros_like(context);
    const Tensor grad_lse = upstream[1].defined() ? upstream[1].contiguous() : Tensor();
    variable_list gradients(part::count);
    for (size_t index = 0; index < part::count; ++index) {
      const Tensor& x = inputs.parts[index];
      if (x.defined() && (wanted[index] || index < part::vector))
        gradients[index] = at::empty(x.sizes(), x.options());
    }
    // The kernels keep the heads apart.
    Tensor& vector = gradients[part::vector];
    const bool shared = vector.defined() && vector.dim() == 1;
    if (shared) vector = vector.new_empty({spec.heads, vector.size(0)});
    const auto data = [&](part::Index index) { return pointer_of<T>(gradients[index]); };
    kernels::attention_backward<S>(
        inputs.problem<S>(spec),
        {view_of<S>(context), pointer_of<const T>(lse), view_of<S>(grad_context),
         pointer_of<const T>(grad_lse)},
        {view_of<S, S>(gradients[part::query]), view_of<S, S>(gradients[part::key]),
         view_of<S, S>(gradients[part::value]), data(part::vector), data(part::dense),
         data(part::slopes), data(part::sinks), data(part::relative), data(part::centres),
         data(part::widths)},
        at::get_num_threads());
    if (shared) vector = vector.sum(0);
    return gradients;
  });
}

// The same gradients as functions that can be differentiated again: those of the composed twin.
variable_list twin_gradients(const Parts& parts, const LoweredSpec& spec,
                             const variable_list& upstream) {
  // The same tensor may be two parts; each needs a gradient of its own.
  Parts own = parts;
  variable_list inputs;
  inputs.reserve(part::count);
  for (Tensor& x : own) {
    if (!x.defined() || !x.requires_grad()) continue;
    x = x.view_as(x);
    inputs.push_back(x);
  }
  const AttentionResult result = composed_attention(own, spec);
  variable_list outputs, seeds;
  // Not every output follows every input: the lse of some normalisers is 0.
  if (upstream[0].defined() && result.context.requires_grad()) {
    outputs.push_back(result.context);
    seeds.push_back(upstream[0].to(result.context.scalar_type()));
  }
  if (upstream[1].defined() && result.lse.requires_grad()) {
    outputs.push_back(result.lse);
    seeds.push_back(upstream[1]);
  }
  if (outputs.empty()) return variable_list(part::count);
  const variable_list found = torch::autograd::grad(outputs, inputs, seeds, /*retain_graph=*/true,
                                                    /*create_graph=*/true, /*allow_unused=*/true);
  variable_list gradients(part::count);
  for (size_t index = 0, n = 0; index < part::count; ++index)
    if (own[index].defined() && own[index].requires_grad()) gradients[index] = found[n++];
  return gradients;
}

struct FusedFunction : torch::autograd::Function<FusedFunction> {
  static variable_list forward(AutogradContext* context,
                               const c10::intrusive_ptr<LoweredSpec>& spec, const Tensor& query,
                               const Tensor& key, const Tensor& value, const Optional& vector,
                               const Optional& dense, const Optional& slopes, const Optional& sinks,
                               const Optional& relative, const Optional& centres,
                               const Optional& widths) {
    variable_list saved = {query, key, value};
    saved.reserve(part::count + 2);
    for (const Optional* x : {&vector, &dense, &slopes, &sinks, &relative, &centres, &widths})
      saved.push_back(x->value_or(Tensor()));
    variable_list results = run_forward(parts_of(saved), *spec);
    saved.insert(saved.end(), results.begin(), results.end());
    // Backward reads the tensors of the scope again. As they are saved, changing them in place
    // before that is an error.
    append_tensors(spec->scope, saved);
    context->save_for_backward(std::move(saved));
    context->saved_data["spec"] = c10::IValue::make_capsule(spec);
    context->set_materialize_grads(false);
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const variable_list saved = context->get_saved_variables();
    const auto spec = context->saved_data["spec"].toCapsule();
    const Parts parts = parts_of(saved);
    variable_list gradients(1);  // the spec has none
    if (!upstream[0].defined() && !upstream[1].defined()) {
      gradients.resize(1 + part::count);
      return gradients;
    }
    const LoweredSpec& of = static_cast<const LoweredSpec&>(*spec);
    std::array<bool, part::count> wanted{};
    for (size_t index = 0; index < part::count; ++index)
      wanted[index] = parts[index].defined() && parts[index].requires_grad();
    const variable_list of_parts =
        at::GradMode::is_enabled()
            ? twin_gradients(parts, of, upstream)
            : run_backward(parts, of, saved[part::count], saved[part::count + 1], upstream, wanted);
    gradients.insert(gradients.end(), of_parts.begin(), of_parts.end());
    return gradients;
  }
};

bool has_forward_gradient(const Tensor& x) { return x.defined() && x._fw_grad(0).defined(); }

}  // namespace

std::string why_not_fused(const Parts& parts, const LoweredSpec& spec) {
  const Tensor& query = parts[part::query];
  if (!query.device().is_cpu())
    return fmt::format("the tensors are on {}; the kernels run on the CPU", query.device().str());
  const at::ScalarType type = query.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kBFloat16 && type != at::kHalf)
    return fmt::format("there is no kernel for {}", c10::toString(type));
  if (spec.score->family == Family::location)
    return fmt::format("score {} compares no queries with keys", spec.score->name);
  if (spec.normaliser->running_sums) return "linear attention never forms its weights";
  if (!spec.normaliser->kernel)
    return fmt::format("there is no kernel for normaliser {}", spec.normaliser->name);
  for (const Tensor& x : parts)
    if (has_forward_gradient(x)) return "forward-mode derivatives are those of the composed path";
  return {};
}

AttentionResult fused_attention(const Parts& parts, const c10::intrusive_ptr<LoweredSpec>& spec) {
  const auto optional = [&](part::Index index) {
    return parts[index].defined() ? Optional(parts[index]) : Optional();
  };
  const variable_list results = FusedFunction::apply(
      spec, parts[part::query], parts[part::key], parts[part::value], optional(part::vector),
      optional(part::dense), optional(part::slopes), optional(part::sinks),
      optional(part::relative), optional(part::centres), optional(part::widths));
  return {results[0], results[1]};
}

}  // namespace attend
