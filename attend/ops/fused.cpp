#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/composed-inl.h"
#include "attend/ops/fused-inl.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/twin_gradients.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Autograd's type for a tensor that may be absent.
using Optional = c10::optional<Tensor>;

void append_tensors(const Scope& scope, variable_list& tensors) {
  for (const Clause& clause : scope.any_of) {
    for (const ConditionPointer& condition : clause) {
      const variable_list own = condition->tensors();
      tensors.insert(tensors.end(), own.begin(), own.end());
    }
  }
}

Parts parts_of(const variable_list& tensors) {
  Parts parts;
  std::copy_n(tensors.begin(), part::count, parts.begin());
  return parts;
}

// Keeps a backend for autograd.
struct KeptBackend : torch::CustomClassHolder {
  explicit KeptBackend(const Backend& kept) : backend(kept) {}
  const Backend& backend;
};

struct FusedFunction : torch::autograd::Function<FusedFunction> {
  static variable_list forward(AutogradContext* context, const Backend* backend,
                               const c10::intrusive_ptr<LoweredSpec>& spec, const Tensor& query,
                               const Tensor& key, const Tensor& value, const Optional& vector,
                               const Optional& dense, const Optional& slopes, const Optional& sinks,
                               const Optional& relative, const Optional& centres,
                               const Optional& widths, const Optional& edges,
                               const Optional& query_sums, const Optional& key_sums,
                               const Optional& alphas, const Optional& query_products,
                               const Optional& key_products) {
    variable_list saved = {query, key, value};
    saved.reserve(part::count + 2);
    for (const Optional* x :
         {&vector, &dense, &slopes, &sinks, &relative, &centres, &widths, &edges, &query_sums,
          &key_sums, &alphas, &query_products, &key_products})
      saved.push_back(x->value_or(Tensor()));
    saved.emplace_back();  // no backend takes factors
    const bool keeps = std::any_of(saved.begin(), saved.end(), [](const Tensor& x) {
      return x.defined() && x.requires_grad();
    });
    Tensor unrounded;
    const auto [attended, lse] =
        backend->forward(parts_of(saved), *spec, keeps ? &unrounded : nullptr);
    saved.insert(saved.end(), {unrounded.defined() ? unrounded : attended, lse});
    // Backward reads the tensors of the scope again. Saving them makes it an error to change them
    // in place before that.
    append_tensors(spec->scope, saved);
    context->save_for_backward(std::move(saved));
    context->saved_data["spec"] = c10::IValue::make_capsule(spec);
    context->saved_data["backend"] =
        c10::IValue::make_capsule(c10::make_intrusive<KeptBackend>(*backend));
    context->set_materialize_grads(false);
    return {attended, lse};
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const variable_list saved = context->get_saved_variables();
    const auto spec = context->saved_data["spec"].toCapsule();
    const Parts parts = parts_of(saved);
    variable_list gradients(2);  // undefined for backend and spec
    if (!upstream[0].defined() && !upstream[1].defined()) {
      gradients.resize(2 + part::factors);
      return gradients;
    }
    const LoweredSpec& lowered = static_cast<const LoweredSpec&>(*spec);
    std::array<bool, part::count> wanted{};
    for (size_t index = 0; index < part::count; ++index)
      wanted[index] = parts[index].defined() && parts[index].requires_grad();
    if (at::GradMode::is_enabled()) {
      const variable_list part_gradients =
          twin_gradients({parts.begin(), parts.end()}, upstream,
                         [&lowered](const variable_list& own) -> variable_list {
                           const AttentionResult twin = composed_attention(parts_of(own), lowered);
                           return {twin.context, twin.lse};
                         });
      gradients.insert(gradients.end(), part_gradients.begin(), part_gradients.end() - 1);
      return gradients;
    }
    const auto kept = context->saved_data["backend"].toCapsule();
    const Parts part_gradients = static_cast<const KeptBackend&>(*kept).backend.backward(
        parts, lowered, {saved[part::count], saved[part::count + 1]}, {upstream[0], upstream[1]},
        wanted);
    gradients.insert(gradients.end(), part_gradients.begin(), part_gradients.end() - 1);
    return gradients;
  }
};

}  // namespace

BackendChoice fused_backend(const Parts& parts, const LoweredSpec& spec) {
  for (const Tensor& x : parts)
    if (has_forward_gradient(x))
      return {nullptr, "forward-mode derivatives need the composed path"};
  return choose_backend(parts, spec);
}

AttentionResult fused_attention(const Backend& backend, const Parts& parts,
                                const c10::intrusive_ptr<LoweredSpec>& spec) {
  const auto optional = [&](part::Index index) {
    return parts[index].defined() ? Optional(parts[index]) : Optional();
  };
  const variable_list results = FusedFunction::apply(
      &backend, spec, parts[part::query], parts[part::key], parts[part::value],
      optional(part::vector), optional(part::dense), optional(part::slopes), optional(part::sinks),
      optional(part::relative), optional(part::centres), optional(part::widths),
      optional(part::edges), optional(part::query_sums), optional(part::key_sums),
      optional(part::alphas), optional(part::query_products), optional(part::key_products));
  return {results[0], results[1]};
}

}  // namespace attend
