#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/cpu_problem-inl.h"
#include "attend/ops/scope_checks-inl.h"

namespace attend {
namespace {

using at::Tensor;

Tensor contiguous_on_cpu(const Tensor& x) { return contiguous_numbers(x.to(at::kCPU)); }

// The conditions of a scope as the kernels read them; keeps the tensors that they point to.
class ScopeConversion {
 public:
  ScopeConversion(const LoweredSpec& spec, std::vector<Tensor>& kept) : spec_(spec), kept_(kept) {}

  kernels::Condition operator()(const Window& window) {
    const auto reach = [](int64_t keys) { return std::min(keys, kernels::kUnbounded); };
    const int64_t offset = std::clamp(window.offset, -farthest_offset, farthest_offset);
    const int64_t* offsets = nullptr;
    if (window.offsets.defined())
      offsets =
          keep<int64_t>(contiguous_on_cpu(window.offsets.clamp(-farthest_offset, farthest_offset)));
    return kernels::Window{reach(window.left), reach(window.right), offset, window.dilation,
                           offsets};
  }

  kernels::Condition operator()(const KeyLengths& condition) {
    return kernels::KeyLengths{keep<int64_t>(contiguous_on_cpu(condition.lengths))};
  }

  kernels::Condition operator()(const QueryLengths& condition) {
    return kernels::QueryLengths{keep<int64_t>(contiguous_on_cpu(condition.lengths))};
  }

  kernels::Condition operator()(const Prefix& prefix) const {
    return kernels::Prefix{prefix.length};
  }

  kernels::Condition operator()(const GlobalRows& global) const {
    return kernels::GlobalRows{global.rows};
  }

  kernels::Condition operator()(const Segments& segments) {
    return kernels::Segments{keep<int64_t>(contiguous_on_cpu(segments.query_starts)),
                             keep<int64_t>(contiguous_on_cpu(segments.key_starts)),
                             segments.key_starts.size(0) - 1};
  }

  kernels::Condition operator()(const BlockLayout& blocks) {
    const Tensor layout = contiguous_on_cpu(blocks.layout);
    return kernels::BlockLayout{keep<uint8_t>(layout), layout.size(1), blocks.block,
                                blocks.first_query, blocks.first_key};
  }

  kernels::Condition operator()(const Around& condition) {
    // In float64 16-bit centres and far positions compare as they are.
    const Tensor centres = settled(condition.centres.detach().to(at::kCPU, at::kDouble))
                               .expand({spec_.batch, spec_.heads, spec_.queries});
    return kernels::Around{keep<double>(centres), centres.stride(0), centres.stride(1),
                           centres.stride(2), std::min(condition.reach, kernels::kUnbounded)};
  }

  kernels::Condition operator()(const DenseMask& condition) {
    const Tensor mask =
        condition.mask.to(at::kCPU).expand({spec_.batch, spec_.heads, spec_.queries, spec_.keys});
    return kernels::DenseMask{keep<uint8_t>(mask), mask.stride(0), mask.stride(1), mask.stride(2),
                              mask.stride(3)};
  }

 private:
  // A bool takes a byte of 0 or 1.
  template <class T>
  const T* keep(const Tensor& x) {
    kept_.push_back(x);
    return static_cast<const T*>(x.data_ptr());
  }

  const LoweredSpec& spec_;
  std::vector<Tensor>& kept_;
};

kernels::Scope kernel_scope(const LoweredSpec& spec, std::vector<Tensor>& kept) {
  ScopeConversion conversion(spec, kept);
  kernels::Scope scope;
  scope.any_of.reserve(spec.scope.any_of.size());
  for (const Clause& clause : spec.scope.any_of) {
    kernels::Clause& converted = scope.any_of.emplace_back();
    converted.reserve(clause.size());
    for (const Condition& condition : clause)
      converted.push_back(std::visit(conversion, condition));
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
    // Axes that an expanded tensor repeats are read as they are. Their gradients are not added up
    // here: autograd wants one for each.
    const bool has_strides =
        index < part::vector || index == part::dense || index == part::relative;
    const bool in_place = has_strides && (index < part::vector || !differentiated[index]);
    parts[index] = in_place ? with_contiguous_rows(parts[index]) : contiguous_numbers(parts[index]);
  }
  scope = kernel_scope(spec, of_scope);
}

kernels::Family kernel_family(const ScoreRow& row) {
  switch (row.family) {
    case Family::dot:
      return kernels::Family::dot;
    case Family::additive:
      return kernels::Family::additive;
    case Family::squared_distance:
      return kernels::Family::squared_distance;
    case Family::absolute_distance:
      return kernels::Family::absolute_distance;
    case Family::location:
      break;
  }
  fail("[attention] score {} has no kernel", row.name);
}

kernels::Activation kernel_activation(const ScoreRow& row) {
  switch (row.activation) {
    case Activation::tanh:
      return kernels::Activation::tanh;
    case Activation::sigmoid:
      return kernels::Activation::sigmoid;
    case Activation::relu:
      return kernels::Activation::relu;
    case Activation::leaky_relu:
      return kernels::Activation::leaky_relu;
  }
  fail("[attention] the activation of score {} has no kernel", row.name);
}

}  // namespace attend
