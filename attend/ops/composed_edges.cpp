// The composed path for a scope of edges only. Each query becomes a batch entry; its keys are the
// keys that it sees, padded to the longest row. The other code of the composed path then applies
// unchanged, and no tensor of size Tq x Tk is made.
#include <ATen/OpMathType.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/axes-inl.h"
#include "attend/ops/bias_parts.h"
#include "attend/ops/composed-inl.h"

namespace attend {
namespace {

using at::Tensor;

// The edges of each query, padded: [B or 1, H or 1, Tq, D] with D the longest row.
struct PaddedRows {
  Tensor present;  // whether there is an edge
  Tensor keys;     // 0 without an edge
  Tensor numbers;  // index of the edge in its list; 0 without an edge
};

void check_room(double numbers, int64_t longest) {
  if (numbers > 0x1p31)
    fail(
        "[attention] the composed path pads the edges of every query to the {} of the longest row, "
        "which takes {:.2g} numbers, more than 2^31: take the fused path, or smaller graphs",
        longest, numbers);
}

PaddedRows padded_rows(const EdgeTensors& lists, const at::Device& device) {
  Tensor offsets = lists.offsets;
  while (offsets.dim() < 3) offsets = offsets.unsqueeze(0);
  const Tensor begin = offsets.slice(-1, 0, -1), end = offsets.slice(-1, 1);
  const int64_t longest = begin.numel() == 0 ? 0 : (end - begin).max().item<int64_t>();
  check_room(static_cast<double>(begin.numel()) * static_cast<double>(longest), longest);
  const Tensor places = begin.unsqueeze(-1) + at::arange(longest, at::kLong);
  const Tensor present = places < end.unsqueeze(-1), absent = present.logical_not();
  const Tensor keys =
      lists.keys.index_select(0, places.masked_fill(absent, 0).reshape({-1})).view_as(places);
  const Tensor numbers = places - offsets.slice(-1, 0, 1).unsqueeze(-1);
  return {present.to(device), keys.masked_fill(absent, 0).to(device),
          numbers.masked_fill(absent, 0).to(device)};
}

// [B, H, Tq, D] as [B Tq, H, 1, D].
Tensor as_entries(const Tensor& x) {
  return x.permute({0, 2, 1, 3}).reshape({x.size(0) * x.size(2), x.size(1), 1, x.size(3)});
}

// The problem with queries as batch entries.
class QueriesAsEntries {
 public:
  Parts parts;
  LoweredSpec spec;

  QueriesAsEntries(const Parts& given, const LoweredSpec& whole)
      : given_(given),
        whole_(whole),
        rows_(padded_rows(*edge_tensors(whole.scope), given[part::query].device())),
        shape_{whole.batch, whole.heads, whole.queries, rows_.keys.size(-1)},
        keys_(rows_.keys.expand(shape_)) {
    check_size();
    spec.score = whole.score;
    spec.normaliser = whole.normaliser;
    spec.options = whole.options;
    spec.scale = whole.scale;
    spec.soft_cap = whole.soft_cap;
    spec.stored = whole.stored;
    spec.batch = whole.batch * whole.queries;
    spec.heads = whole.heads;
    spec.queries = 1;
    spec.keys = shape_[3];
    spec.scope = dense_mask(as_entries(rows_.present.expand(shape_)));
    parts[part::query] = as_entries(given[part::query]);
    parts[part::key] = seen(given[part::key]);
    parts[part::value] = seen(given[part::value]);
    parts[part::vector] = given[part::vector];
    parts[part::sinks] = given[part::sinks];
    parts[part::alphas] = given[part::alphas];
    if (given[part::factors].defined())
      parts[part::factors] = as_entries(given[part::factors].unsqueeze(-1)).squeeze(-1);
    if (const Tensor bias = number_per_edge(); bias.defined())
      parts[part::dense] = as_entries(bias.expand(shape_));
  }

  Tensor dropout_factors(const at::TensorOptions& options) const {
    return as_entries(dropout_factors_of_keys(whole_, keys_, options));
  }

  // [B Tq, H, 1, D] as [B, H, Tq, D].
  Tensor as_rows(const Tensor& x) const {
    return x.reshape({shape_[0], shape_[2], shape_[1], x.size(-1)}).permute({0, 2, 1, 3});
  }

 private:
  void check_size() const {
    const int64_t depth = std::max(given_[part::key].size(-1), given_[part::value].size(-1));
    check_room(
        static_cast<double>(keys_.numel()) * static_cast<double>(std::max<int64_t>(depth, 1)),
        shape_[3]);
  }

  // The keys or values [B, Hkv, Tk, A] that each query sees, as [B Tq, H, D, A].
  Tensor seen(const Tensor& x) const {
    const int64_t depth = x.size(-1);
    const Tensor index =
        keys_.reshape({shape_[0], shape_[1], shape_[2] * shape_[3], 1}).expand({-1, -1, -1, depth});
    const Tensor rows = repeat_heads(x, shape_[1]).gather(2, index);
    return rows.view({shape_[0], shape_[1], shape_[2], shape_[3], depth})
        .permute({0, 2, 1, 3, 4})
        .reshape({shape_[0] * shape_[2], shape_[1], shape_[3], depth});
  }

  // Sum of the biases; undefined if there are none.
  Tensor number_per_edge() const {
    Tensor sum;
    const auto add = [&](const Tensor& term) { sum = sum.defined() ? sum + term : term; };
    const Tensor query = at::arange(shape_[2], keys_.options()).unsqueeze(1);
    const auto wide = [&](const Tensor& x) {
      return x.expand({shape_[0], shape_[1], shape_[2], x.size(3)});
    };
    if (const Tensor& dense = given_[part::dense]; dense.defined())
      add(wide(dense).gather(3, keys_));
    if (const Tensor& slopes = given_[part::slopes]; slopes.defined())
      add(-slopes.view({1, -1, 1, 1}) *
          (keys_ - query - whole_.slope_offset).abs().to(slopes.scalar_type()));
    if (const Tensor& relative = given_[part::relative]; relative.defined())
      add(wide(relative).gather(3, places_in(relative, query)));
    if (const Tensor& centres = given_[part::centres]; centres.defined()) {
      const Tensor away = keys_ - centres.unsqueeze(-1);
      add(-(away / given_[part::widths].unsqueeze(-1)).square() / 2);
    }
    if (const Tensor& sums = given_[part::query_sums]; sums.defined()) {
      const Tensor own =
          given_[part::key_sums].gather(2, keys_.reshape({shape_[0], shape_[1], -1})).view(shape_);
      const Tensor away = sums.unsqueeze(-1) - own;
      add(at::where(away.detach().gt(0), -away, away)
              .to(at::toOpMathType(given_[part::query].scalar_type())));
    }
    if (const Tensor& products = given_[part::query_products]; products.defined())
      add(products.gather(3, columns(query)));
    if (const Tensor& products = given_[part::key_products]; products.defined())
      add(products.flatten(2)
              .gather(2, (keys_ * products.size(3) + columns(query)).flatten(2))
              .view(shape_));
    if (const Tensor& edges = given_[part::edges]; edges.defined())
      add(wide(edges).gather(3, rows_.numbers.expand(shape_)));
    return sum;
  }

  // Column of the products for each edge.
  Tensor columns(const Tensor& query) const {
    const Tensor place = keys_ - query + shape_[2] - 1;
    return whole_.columns.to(at::kLong)
        .expand({shape_[0], -1})
        .gather(1, place.reshape({shape_[0], -1}))
        .view(shape_);
  }

  Tensor places_in(const Tensor& relative, const Tensor& query) const {
    const Tensor row =
        whole_.query_positions.defined() ? whole_.query_positions.unsqueeze(1) : query;
    const Tensor key = whole_.key_positions.defined()
                           ? whole_.key_positions.index_select(0, keys_.reshape({-1})).view(shape_)
                           : keys_;
    return (key - row + whole_.relative_offset).clamp(0, relative.size(3) - 1);
  }

  const Parts& given_;
  const LoweredSpec& whole_;
  PaddedRows rows_;
  std::vector<int64_t> shape_;  // [B, H, Tq, D]
  Tensor keys_;                 // [B, H, Tq, D]
};

// Converts weights [B, H, Tq, D] of padded rows to [B, H, edges of the longest list]; 0 for queries
// outside the selected rows.
Tensor by_edge(const Tensor& weights, const LoweredSpec& spec, const kernels::Selection& rows) {
  const EdgeTensors& lists = *edge_tensors(spec.scope);
  const PaddedRows padded = padded_rows(lists, weights.device());
  const int64_t longest = longest_list(lists);
  const Tensor query = at::arange(spec.queries, padded.keys.options()).unsqueeze(1);
  const Tensor wanted = padded.present.logical_and(query >= rows.first_row)
                            .logical_and_(query < rows.first_row + rows.rows);
  // Everything else goes to an additional entry after the last edge.
  const Tensor places = padded.numbers.masked_fill(wanted.logical_not(), longest);
  const std::vector<int64_t> shape = {spec.batch, spec.heads, spec.queries * padded.keys.size(-1)};
  return weights.new_zeros({spec.batch, spec.heads, longest + 1})
      .scatter(2, places.expand(weights.sizes()).reshape(shape), weights.reshape(shape))
      .narrow(2, 0, longest);
}

}  // namespace

// Draws, and scores that compare no queries with keys, depend on the index of a key among all keys.
// A query that looks back needs all keys.
bool goes_along_edges(const LoweredSpec& spec) {
  return edge_tensors(spec.scope) && spec.scope.any_of[0].size() == 1 && spec.score->family &&
         spec.normaliser->draws == Draws::nothing && !spec.normaliser->sequential &&
         !spec.normaliser->running_sums;
}

AttentionResult composed_along_edges(const Parts& parts, const LoweredSpec& spec) {
  const QueriesAsEntries entries(parts, spec);
  auto [weights, lse] = normalised_scores(entries.parts, entries.spec);
  if (spec.dropout.probability > 0) weights = weights * entries.dropout_factors(weights.options());
  const Tensor context = at::matmul(weights, entries.parts[part::value].to(weights.scalar_type()));
  return {entries.as_rows(context), entries.as_rows(lse.unsqueeze(-1)).squeeze(-1)};
}

Tensor composed_edge_weights(const Parts& parts, const LoweredSpec& spec,
                             const kernels::Selection& rows) {
  if (!goes_along_edges(spec)) return edges_of_weights(composed_weights(parts, spec), spec, rows);
  const QueriesAsEntries entries(parts, spec);
  const Tensor weights = normalised_scores(entries.parts, entries.spec).weights;
  return by_edge(entries.as_rows(weights), spec, rows);
}

Tensor dense_of_edges(const Tensor& bias, const LoweredSpec& spec) {
  const PaddedRows rows = padded_rows(*edge_tensors(spec.scope), bias.device());
  const std::vector<int64_t> shape = {spec.batch, spec.heads, spec.queries, rows.keys.size(-1)};
  const Tensor wide = bias.expand({spec.batch, spec.heads, spec.queries, bias.size(-1)});
  const Tensor values = wide.gather(3, rows.numbers.expand(shape))
                            .masked_fill(rows.present.expand(shape).logical_not(), 0.0);
  return at::zeros({spec.batch, spec.heads, spec.queries, spec.keys}, bias.options())
      .scatter_add(3, rows.keys.expand(shape), values);
}

Tensor edges_of_weights(const Tensor& weights, const LoweredSpec& spec,
                        const kernels::Selection& rows) {
  const Tensor keys = padded_rows(*edge_tensors(spec.scope), weights.device()).keys;
  return by_edge(weights.gather(3, keys.expand({spec.batch, spec.heads, spec.queries, -1})), spec,
                 rows);
}

}  // namespace attend
