#include <algorithm>
#include <array>

#include "attend/base/error.h"
#include "attend/ops/cpu_problem-inl.h"

namespace attend {
namespace {

using at::Tensor;

int64_t counted(const kernels::BlockScope& scope, int64_t row, int64_t rows) {
  if (scope.one_range()) {
    const auto [begin, end] = scope.row_range(row);
    return std::max<int64_t>(0, end - begin);
  }
  constexpr int64_t tile = 64;
  std::array<uint8_t, tile * kernels::BlockScope::kMaxRows> allowed{};
  int64_t count = 0;
  const auto [begin, end] = scope.hull();
  for (int64_t key = begin; key < end; key += tile) {
    const int64_t stop = std::min(key + tile, end);
    const kernels::Cover cover = scope.cover(key, stop);
    if (cover == kernels::Cover::full) count += stop - key;
    if (cover != kernels::Cover::partial) continue;
    scope.fill_mask(key, stop, rows, allowed.data());
    for (int64_t j = 0; j < stop - key; ++j) count += allowed[static_cast<size_t>(j * rows + row)];
  }
  return count;
}

}  // namespace

Tensor keys_in_scope(const LoweredSpec& spec) {
  Tensor counts =
      at::full({spec.batch, spec.heads, spec.queries}, static_cast<double>(spec.keys), at::kDouble);
  if (spec.scope.any_of.empty()) return counts;
  std::vector<Tensor> kept;
  const kernels::Scope scope = kernel_scope(spec, kept);
  auto* to = counts.data_ptr<double>();
  constexpr int64_t block = kernels::BlockScope::kMaxRows;
  for (int64_t head = 0; head < spec.batch * spec.heads; ++head) {
    for (int64_t first = 0; first < spec.queries; first += block) {
      const int64_t rows = std::min(block, spec.queries - first);
      const kernels::BlockScope own(scope, {head / spec.heads, head % spec.heads, first}, rows,
                                    spec.keys);
      for (int64_t r = 0; r < rows; ++r) *to++ = static_cast<double>(counted(own, r, rows));
    }
  }
  return counts;
}

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

Tensor with_contiguous_rows(const Tensor& x) {
  if (!x.defined()) return x;
  const Tensor plain = settled(x);
  return plain.size(-1) <= 1 || plain.stride(-1) == 1 ? plain : plain.contiguous();
}

KernelInputs::KernelInputs(const Parts& given, const LoweredSpec& spec,
                           const std::array<bool, part::count>& differentiated)
    : parts(given),
      query_positions(spec.query_positions),
      key_positions(spec.key_positions),
      columns(spec.columns.defined() ? spec.columns.contiguous() : at::Tensor()) {
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
