#include <ATen/OpMathType.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/axes-inl.h"
#include "attend/ops/composed-inl.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/paths-inl.h"
#include "attend/ops/sequential-inl.h"

namespace attend {
namespace {

using at::Tensor;

void check_lse(const Tensor& lse, const Tensor& query) {
  if (!lse.defined() || lse.sizes() != query.sizes().slice(0, query.dim() - 1))
    fail("[attention] lse has shape {}, query [{}]; they must match but for the last axis",
         lse.defined() ? fmt::format("[{}]", fmt::join(lse.sizes(), ", ")) : "undefined",
         fmt::join(query.sizes(), ", "));
  if (!at::isFloatingType(lse.scalar_type()))
    fail("[attention] lse has dtype {}; it must be floating point",
         c10::toString(lse.scalar_type()));
  if (lse.device() != query.device())
    fail("[attention] lse is on {}, query on {}; they must match", lse.device().str(),
         query.device().str());
}

// Inputs of a summary, with the selection resolved.
struct Request {
  Tensor query;  // query of the caller
  Lowered lowered;
  WithoutAutocast no_autocast;
  Tensor lse;  // [B, H, Tq], contiguous
  std::vector<int64_t> heads;
  kernels::Selection rows;  // points to `heads`
  Path path;
  const Backend* backend;  // null: by tensor operations

  Request(const Tensor& q, const Tensor& key, const Tensor& given_lse, const AttentionSpec& spec,
          const Selection& selection)
      : query(q), lowered(lower(q, key, {}, spec)), heads(selection.heads) {
    const LoweredSpec& lowered_spec = *lowered.spec;
    check_lse(given_lse, q);
    lse = given_lse.reshape({lowered_spec.batch, lowered_spec.heads, lowered_spec.queries})
              .to(at::toOpMathType(lowered_spec.stored));
    lse = contiguous_numbers(lse);
    select_rows(selection);
    select_heads();
    path = spec.path;
    backend = runs_in_order(lowered) ? nullptr : weights_backend(lowered, lse, path);
  }

  // Selected weights by tensor operations, in the dtype of the arithmetic.
  Tensor composed() const {
    const Tensor all = runs_in_order(lowered) ? weights_in_order(lowered, lse, path)
                                              : composed_weights(lowered.parts, *lowered.spec);
    return of_heads(all).narrow(2, rows.first_row, rows.rows);
  }

  Tensor composed_edges() const {
    const LoweredSpec& spec = *lowered.spec;
    return of_heads(runs_in_order(lowered)
                        ? edges_of_weights(weights_in_order(lowered, lse, path), spec, rows)
                        : composed_edge_weights(lowered.parts, spec, rows));
  }

  // Calls a function of the backend for the selected rows.
  template <class Function, class... More>
  auto from(Function function, More... more) const {
    return (backend->*function)(lowered.parts, *lowered.spec, lse, rows, more...);
  }

 private:
  Tensor of_heads(const Tensor& all) const {
    return all.index_select(1, at::tensor(heads, at::kLong).to(all.device()));
  }

  void select_rows(const Selection& selection) {
    const int64_t queries = lowered.spec->queries, first = selection.first_row;
    if (first < 0 || first > queries)
      fail("[attention] row {} of the weights was asked for; there are {} queries", first, queries);
    const int64_t count = selection.rows.value_or(queries - first);
    if (count < 0 || count > queries - first)
      fail("[attention] {} rows of the weights from row {} on were asked for; there are {} queries",
           count, first, queries);
    rows.first_row = first;
    rows.rows = count;
  }

  void select_heads() {
    const int64_t all = lowered.spec->heads;
    if (!heads.empty() && query.dim() < 4)
      fail("[attention] heads of the weights were chosen; queries of {} axes lack heads",
           query.dim());
    for (const int64_t head : heads) {
      if (head < 0 || head >= all)
        fail("[attention] head {} of the weights was asked for; there are {} heads", head, all);
    }
    if (heads.empty()) heads = all_heads(*lowered.spec);
    rows.heads = heads;
  }
};

TopWeights composed_top(const Tensor& weights, int64_t count) {
  const auto [sorted, order] = weights.sort(/*stable=*/true, -1, /*descending=*/true);
  const int64_t kept = std::min(count, weights.size(-1));
  const Tensor largest = sorted.narrow(-1, 0, kept);
  const Tensor none = largest <= 0;
  return {
      at::constant_pad_nd(largest.masked_fill(none, 0.0), {0, count - kept}, 0.0),
      at::constant_pad_nd(order.narrow(-1, 0, kept).masked_fill(none, -1), {0, count - kept}, -1)};
}

}  // namespace

Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                         const AttentionSpec& spec, const Selection& selection) {
  const Request request(query, key, lse, spec, selection);
  const Tensor weights = request.backend ? request.from(&Backend::weights) : request.composed();
  return with_axes_of(weights.to(request.lowered.spec->stored), query);
}

Tensor attention_edge_weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                              const AttentionSpec& spec, const Selection& selection) {
  const Request request(query, key, lse, spec, selection);
  const LoweredSpec& lowered = *request.lowered.spec;
  if (!edge_tensors(lowered.scope))
    fail(
        "[attention] weights by edge were asked for; the scope is not one clause with one "
        "condition "
        "of edges");
  const Tensor weights =
      request.backend ? request.from(&Backend::edge_weights) : request.composed_edges();
  return with_axes_of(weights.to(lowered.stored), query);
}

TopWeights attention_top(const Tensor& query, const Tensor& key, const Tensor& lse, int64_t count,
                         const AttentionSpec& spec, const Selection& selection) {
  if (count < 1) fail("[attention] the {} largest weights were asked for; 1 is the least", count);
  const Request request(query, key, lse, spec, selection);
  const TopWeights top = request.backend ? request.from(&Backend::top, count)
                                         : composed_top(request.composed(), count);
  return {with_axes_of(top.weights.to(request.lowered.spec->stored), query),
          with_axes_of(top.keys, query)};
}

Tensor attention_argmax(const Tensor& query, const Tensor& key, const Tensor& lse,
                        const AttentionSpec& spec, const Selection& selection) {
  return attention_top(query, key, lse, 1, spec, selection).keys.squeeze(-1);
}

Tensor attention_entropy(const Tensor& query, const Tensor& key, const Tensor& lse,
                         const AttentionSpec& spec, const Selection& selection) {
  const Request request(query, key, lse, spec, selection);
  if (request.backend) return with_axes_of(request.from(&Backend::entropy), query);
  const Tensor weights = request.composed();
  // 0 ln 0 is 0, with derivative 0. The logarithm of a negative number is NaN.
  const Tensor positive = weights.masked_fill(weights == 0, 1.0);
  return with_axes_of(-(positive * positive.log()).sum(-1), query);
}

Tensor attention_column_sums(const Tensor& query, const Tensor& key, const Tensor& lse,
                             const AttentionSpec& spec, const Selection& selection) {
  const Request request(query, key, lse, spec, selection);
  const Tensor sums =
      request.backend ? request.from(&Backend::column_sums) : request.composed().sum(2);
  return with_axes_of(sums, query);
}

}  // namespace attend
