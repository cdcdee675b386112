#pragma once

#include <vector>

#include "attend/kernels/attention.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/lowered_spec.h"
#include "attend/ops/normalisers-inl.h"

namespace attend {

// Calls visit.operator()<S>() with the storage type S for float32, float64, bfloat16 or float16.
template <class Visit>
auto with_storage(at::ScalarType type, Visit visit) {
  if (type == at::kDouble) return visit.template operator()<double>();
  if (type == at::kBFloat16) return visit.template operator()<kernels::BFloat16>();
  if (type == at::kHalf) return visit.template operator()<kernels::Float16>();
  return visit.template operator()<float>();
}

// Returns the tensor settled, with a contiguous last axis.
at::Tensor with_contiguous_rows(const at::Tensor& x);

// View of a tensor [batch, heads, rows, depth]; broadcast axes of 1 get stride 0.
template <class S, class Pointed = const S>
kernels::View<Pointed> view_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  const auto stride = [&](int64_t axis) { return x.size(axis) == 1 ? 0 : x.stride(axis); };
  return {pointer_of<Pointed>(x), stride(0), stride(1), stride(2)};
}

// The scope for the kernels; `kept` receives the tensors that it points to.
kernels::Scope kernel_scope(const LoweredSpec& spec, std::vector<at::Tensor>& kept);

// Number of keys in the scope of each query: [B, H, Tq], in double.
at::Tensor keys_in_scope(const LoweredSpec& spec);

// Parts in the layout of the kernels: settled, with contiguous rows and vectors, and fully
// contiguous for a bias that is differentiated. Also keeps the positions and the tensors of the
// scope alive, since the problem points to all of them.
struct KernelInputs {
  Parts parts;
  at::Tensor query_positions, key_positions, columns;
  std::vector<at::Tensor> scope_tensors;
  kernels::Scope scope;

  KernelInputs(const Parts& parts, const LoweredSpec& spec,
               const std::array<bool, part::count>& differentiated = {});

  template <class S>
  kernels::Problem<S> problem(const LoweredSpec& spec) const;
};

template <class S>
kernels::Problem<S> KernelInputs::problem(const LoweredSpec& spec) const {
  using T = kernels::Compute<S>;
  const at::Tensor &query = parts[part::query], &key = parts[part::key];
  const at::Tensor &value = parts[part::value], &vector = parts[part::vector];
  kernels::Problem<S> p;
  p.shape = {spec.batch, spec.heads,     key.size(1),   spec.queries,
             spec.keys,  query.size(-1), value.size(-1)};
  p.score.family = spec.score->family.value();
  p.score.activation = spec.score->activation;
  p.score.scale = spec.scale;
  p.score.soft_cap = spec.soft_cap;
  p.score.vector = pointer_of<const T>(vector);
  p.score.vector_head_stride = vector.defined() && vector.dim() == 2 ? vector.size(1) : 0;
  p.scope = scope;
  p.bias.dense = view_of<T>(parts[part::dense]);
  p.bias.slopes = pointer_of<const T>(parts[part::slopes]);
  p.bias.slope_offset = spec.slope_offset;
  p.bias.relative = view_of<T>(parts[part::relative]);
  p.bias.relative_count = parts[part::relative].defined() ? parts[part::relative].size(3) : 0;
  p.bias.relative_offset = spec.relative_offset;
  p.bias.query_positions = pointer_of<const int64_t>(query_positions);
  p.bias.key_positions = pointer_of<const int64_t>(key_positions);
  p.bias.centres = pointer_of<const T>(parts[part::centres]);
  p.bias.widths = pointer_of<const T>(parts[part::widths]);
  p.bias.edges = view_of<T>(parts[part::edges]);
  p.bias.query_sums = pointer_of<const double>(parts[part::query_sums]);
  p.bias.key_sums = pointer_of<const double>(parts[part::key_sums]);
  const at::Tensor& products =
      parts[parts[part::query_products].defined() ? part::query_products : part::key_products];
  p.bias.query_products = pointer_of<const T>(parts[part::query_products]);
  p.bias.key_products = pointer_of<const T>(parts[part::key_products]);
  p.bias.product_columns = products.defined() ? products.size(3) : 0;
  p.bias.columns = columns.defined() ? columns.data_ptr<int32_t>() : nullptr;
  p.bias.columns_stride = columns.defined() && columns.size(0) > 1 ? columns.size(1) : 0;
  p.sinks = pointer_of<const T>(parts[part::sinks]);
  p.normaliser = spec.normaliser->kernel.value();
  p.alphas = pointer_of<const T>(parts[part::alphas]);
  p.top = top_of(spec.options);
  p.dropout = spec.dropout;
  p.query = view_of<S>(query);
  p.key = view_of<S>(key);
  p.value = view_of<S>(value);
  return p;
}

}  // namespace attend
