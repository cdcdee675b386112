#include <ATen/Parallel.h>

#include "attend/base/error.h"
#include "attend/ops/cpu_problem-inl.h"
#include "attend/ops/fused-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Calls run.operator()<S>(problem, lse, selection, threads) with the arguments of a kernel.
template <class Run>
void with_kernel(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                 const kernels::Selection& rows, Run run) {
  with_storage(parts[part::query].scalar_type(), [&]<class S>() {
    const KernelInputs inputs(parts, spec);
    run.template operator()<S>(inputs.problem<S>(spec), pointer_of<const kernels::Compute<S>>(lse),
                               rows, at::get_num_threads());
  });
}

// Returns a tensor [batch, heads, rows], with a further axis `last` if set.
Tensor rows_of(const LoweredSpec& spec, const Tensor& lse, const kernels::Selection& rows,
               std::optional<int64_t> last = {}) {
  std::vector<int64_t> shape = {spec.batch, static_cast<int64_t>(rows.heads.size()), rows.rows};
  if (last) shape.push_back(*last);
  return at::empty(shape, lse.options());
}

class CpuBackend : public Backend {
 public:
  std::string refusal_reason(const Parts& parts, const LoweredSpec& spec) const override {
    const Tensor& query = parts[part::query];
    if (!query.device().is_cpu())
      return fmt::format("the tensors are on {}; the kernels run on the CPU", query.device().str());
    const at::ScalarType type = query.scalar_type();
    if (type != at::kFloat && type != at::kDouble && type != at::kBFloat16 && type != at::kHalf)
      return fmt::format("no kernel supports {}", c10::toString(type));
    if (!spec.score->family)
      return fmt::format("score {} does not compare queries with keys", spec.score->name);
    if (parts[part::factors].defined())
      return fmt::format("normaliser {} multiplies scores of {}, which no kernel does",
                         spec.normaliser->name, spec.score->name);
    if (spec.normaliser->running_sums) return "linear attention never forms its weights";
    if (!spec.normaliser->kernel)
      return fmt::format("no kernel supports normaliser {}", spec.normaliser->name);
    return {};
  }

  AttentionResult forward(const Parts& parts, const LoweredSpec& spec,
                          Tensor* unrounded) const override {
    return with_storage(parts[part::query].scalar_type(), [&]<class S>() -> AttentionResult {
      using T = kernels::Compute<S>;
      const KernelInputs inputs(parts, spec);
      const Tensor& query = parts[part::query];
      const int64_t depth = parts[part::value].size(-1);
      const Tensor context =
          at::empty({spec.batch, spec.heads, spec.queries, depth}, query.options());
      const auto arithmetic = query.options().dtype(stored_type<T>);
      const Tensor lse = at::empty({spec.batch, spec.heads, spec.queries}, arithmetic);
      const bool keeps = kernels::kIsHalf<S> && unrounded != nullptr;
      if (keeps) *unrounded = at::empty(context.sizes(), arithmetic);
      kernels::attention_forward<S>(
          inputs.problem<S>(spec),
          {kernels::contiguous(pointer_of<S>(context), spec.heads, spec.queries, depth),
           pointer_of<T>(lse), keeps ? pointer_of<T>(*unrounded) : nullptr},
          at::get_num_threads());
      return {context, lse};
    });
  }

  Parts backward(const Parts& parts, const LoweredSpec& spec, const AttentionResult& result,
                 const AttentionResult& upstream,
                 const std::array<bool, part::count>& wanted) const override {
    return with_storage(parts[part::query].scalar_type(), [&]<class S>() -> Parts {
      using T = kernels::Compute<S>;
      const KernelInputs inputs(parts, spec, wanted);
      const Tensor grad_context =
          upstream.context.defined()
              ? with_contiguous_rows(upstream.context)
              : at::zeros(result.context.sizes(), parts[part::query].options());
      const Tensor grad_lse = upstream.lse.defined() ? contiguous_numbers(upstream.lse) : Tensor();
      Parts gradients;
      for (size_t index = 0; index < part::count; ++index) {
        const Tensor& x = inputs.parts[index];
        if (x.defined() && (wanted[index] || index < part::vector))
          gradients[index] = at::empty(x.sizes(), x.options());
      }
      // The kernels compute gradients per head.
      Tensor& vector = gradients[part::vector];
      const bool shared = vector.defined() && vector.dim() == 1;
      if (shared) vector = vector.new_empty({spec.heads, vector.size(0)});
      const auto data = [&](part::Index index) { return pointer_of<T>(gradients[index]); };
      kernels::attention_backward<S>(
          inputs.problem<S>(spec),
          {view_of<T>(result.context), pointer_of<const T>(result.lse), view_of<S>(grad_context),
           pointer_of<const T>(grad_lse)},
          {view_of<S, S>(gradients[part::query]), view_of<S, S>(gradients[part::key]),
           view_of<S, S>(gradients[part::value]), data(part::vector), data(part::dense),
           data(part::slopes), data(part::sinks), data(part::relative), data(part::centres),
           data(part::widths), data(part::edges), pointer_of<double>(gradients[part::query_sums]),
           pointer_of<double>(gradients[part::key_sums]), data(part::alphas),
           data(part::query_products), data(part::key_products)},
          at::get_num_threads());
      if (shared) vector = vector.sum(0);
      return gradients;
    });
  }

  Tensor weights(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                 const kernels::Selection& rows) const override {
    Tensor weights = rows_of(spec, lse, rows, spec.keys);
    with_kernel(
        parts, spec, lse, rows,
        [&]<class S>(const auto& problem, const auto* row_lse, const auto& chosen, int threads) {
          auto* data = pointer_of<kernels::Compute<S>>(weights);
          const auto heads = static_cast<int64_t>(rows.heads.size());
          kernels::attention_weights<S>(problem, row_lse, chosen,
                                        kernels::contiguous(data, heads, rows.rows, spec.keys),
                                        threads);
        });
    return weights;
  }

  Tensor edge_weights(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                      const kernels::Selection& rows) const override {
    const int64_t longest = longest_list(*edge_tensors(spec.scope));
    Tensor weights =
        at::empty({spec.batch, static_cast<int64_t>(rows.heads.size()), longest}, lse.options());
    with_kernel(
        parts, spec, lse, rows,
        [&]<class S>(const auto& problem, const auto* row_lse, const auto& chosen, int threads) {
          kernels::attention_edge_weights<S>(problem, row_lse, chosen,
                                             pointer_of<kernels::Compute<S>>(weights), threads);
        });
    return weights;
  }

  TopWeights top(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                 const kernels::Selection& rows, int64_t count) const override {
    const Tensor weights = rows_of(spec, lse, rows, count);
    TopWeights top = {weights, at::empty(weights.sizes(), at::kLong)};
    with_kernel(
        parts, spec, lse, rows,
        [&]<class S>(const auto& problem, const auto* row_lse, const auto& chosen, int threads) {
          kernels::attention_top<S>(problem, row_lse, chosen, count,
                                    pointer_of<kernels::Compute<S>>(top.weights),
                                    pointer_of<int64_t>(top.keys), threads);
        });
    return top;
  }

  Tensor entropy(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                 const kernels::Selection& rows) const override {
    Tensor entropy = rows_of(spec, lse, rows);
    with_kernel(
        parts, spec, lse, rows,
        [&]<class S>(const auto& problem, const auto* row_lse, const auto& chosen, int threads) {
          kernels::attention_entropy<S>(problem, row_lse, chosen,
                                        pointer_of<kernels::Compute<S>>(entropy), threads);
        });
    return entropy;
  }

  Tensor column_sums(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                     const kernels::Selection& rows) const override {
    Tensor sums =
        at::empty({spec.batch, static_cast<int64_t>(rows.heads.size()), spec.keys}, lse.options());
    with_kernel(
        parts, spec, lse, rows,
        [&]<class S>(const auto& problem, const auto* row_lse, const auto& chosen, int threads) {
          kernels::attention_column_sums<S>(problem, row_lse, chosen,
                                            pointer_of<kernels::Compute<S>>(sums), threads);
        });
    return sums;
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend cpu;
  return cpu;
}

}  // namespace attend
