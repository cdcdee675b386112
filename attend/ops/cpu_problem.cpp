#include "attend/base/error.h"
#include "attend/ops/cpu_problem-inl.h"

namespace attend {
namespace {

using at::Tensor;

kernels::Scope kernel_scope(const LoweredSpec& spec, std::vector<Tensor>& kept) {
  const Extent extent{spec.batch, spec.heads, spec.queries, spec.keys};
  kernels::Scope scope;
  scope.any_of.reserve(spec.scope.any_of.size());
  for (const Clause& clause : spec.scope.any_of) {
    kernels::Clause& converted = scope.any_of.emplace_back();
    converted.reserve(clause.size());
    for (const ConditionPointer& condition : clause)
      converted.push_back(condition->to_kernel(extent, kept));
  }
  return scope;
}

}  // namespace

Tensor with_contiguous_rows(const Tensor& x) {
  if (!x.defined()) return x;
  const Tensor plain = settled(x);
  return plain.size(-1) <= 1 || plain.stride(-1) == 1 ? plain : plain.contiguous();
}

KernelInputs::KernelInputs(const Parts& given, const LoweredSpec& spec,
                           const std::array<bool, part::count>& differentiated)
    : parts(given), query_positions(spec.query_positions), key_positions(spec.key_positions) {
  for (size_t index = 0; index < part::count; ++index) {
    if (!parts[index].defined()) continue;
    // Expanded axes are read in place. Their gradients are not summed here: autograd expects one
    // per repetition.
    const bool has_strides = index < part::vector || index == part::dense ||
                             index == part::relative || index == part::edges;
    const bool in_place = has_strides && (index < part::vector || !differentiated[index]);
    parts[index] = in_place ? with_contiguous_rows(parts[index]) : contiguous_numbers(parts[index]);
  }
  scope = kernel_scope(spec, scope_tensors);
}

}  // namespace attend
