#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/kernel_problem-inl.h"

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

bool is_differentiated(const Lowered& lowered, const Tensor& lse) {
  const auto wants = [](const Tensor& x) { return x.defined() && x.requires_grad(); };
  return at::GradMode::is_enabled() &&
         (wants(lse) || std::any_of(lowered.parts.begin(), lowered.parts.end(), wants));
}

// Whether weights come from the kernels; Error where the path says so and they cannot.
bool takes_kernel(const Lowered& lowered, const Tensor& lse, Path path) {
  if (path == Path::composed) return false;
  const std::string obstacle = is_differentiated(lowered, lse)
                                   ? "weights are differentiated on the composed path"
                                   : why_not_fused(lowered.parts, *lowered.spec);
  if (path == Path::fused && !obstacle.empty())
    fail("[attention] path is fused, but {}; take automatic or composed", obstacle);
  // The kernels want a pointer even where there is nothing to do.
  return obstacle.empty() && lse.numel() > 0;
}

// Calls run(problem, lse, selection, threads) with what the kernels take.
template <class Run>
void run_kernel(const Lowered& lowered, const Tensor& lse, const kernels::Selection& selection,
                Run run) {
  with_storage(lowered.parts[part::query].scalar_type(), [&]<class S>() {
    const KernelInputs inputs(lowered.parts, *lowered.spec);
    const Tensor rows_lse = lse.contiguous();
    const auto problem = inputs.problem<S>(*lowered.spec);
    run(problem, pointer_of<const kernels::Compute<S>>(rows_lse), selection, at::get_num_threads());
  });
}

// What a summary is made from, with the selection spelt out.
struct Request {
  Tensor query;  // the caller's
  Lowered lowered;
  Tensor lse;  // [B, H, Tq]
  std::vector<int64_t> heads;
  int64_t first_row = 0, rows = 0;
  Path path;
  bool fused;

  int64_t batch() const { return lowered.spec->batch; }
  int64_t head_count() const { return static_cast<int64_t>(heads.size()); }

  Request(const Tensor& q, const Tensor& key, const Tensor& given_lse, const AttentionSpec& spec,
          const Selection& selection)
      : query(q), lowered(lower(q, key, {}, spec)), heads(selection.heads) {
    const LoweredSpec& lowered_spec = *lowered.spec;
    check_lse(given_lse, q);
    lse = given_lse.reshape({lowered_spec.batch, lowered_spec.heads, lowered_spec.queries})
              .to(at::toOpMathType(q.scalar_type()));
    select_rows(selection);
    select_heads();
    path = spec.path;
    fused = takes_kernel(lowered, lse, path) && !runs_in_order(lowered);
  }

  // The selected weights by tensor operations, in the dtype of the arithmetic.
  Tensor composed() const {
    const Tensor all = runs_in_order(lowered) ? weights_in_order(lowered, lse, path)
                                              : composed_weights(lowered.parts, *lowered.spec);
    const Tensor of_heads = all.index_select(1, at::tensor(heads, at::kLong).to(all.device()));
    return of_heads.narrow(2, first_row, rows);
  }

  // Calls run(problem, lse, selection, threads) with what the kernels take.
  template <class Run>
  void with_kernel(Run run) const {
    run_kernel(lowered, lse, {heads, first_row, rows}, run);
  }

  Tensor empty(const std::vector<int64_t>& shape) const { return at::empty(shape, lse.options()); }

 private:
  void select_rows(const Selection& selection) {
    const int64_t queries = lowered.spec->queries;
    first_row = selection.first_row;
    if (first_row < 0 || first_row > queries)
      fail("[attention] row {} of the weights was asked for; there are {} queries", first_row,
           queries);
    rows = selection.rows.value_or(queries - first_row);
    if (rows < 0 || rows > queries - first_row)
      fail("[attention] {} rows of the weights from row {} on were asked for; there are {} queries",
           rows, first_row, queries);
  }

  void select_heads() {
    const int64_t all = lowered.spec->heads;
    if (!heads.empty() && query.dim() < 4)
      fail("[attention] heads of the weights were chosen; queries of {} axes have none",
           query.dim());
    for (const int64_t head : heads) {
      if (head < 0 || head >= all)
        fail("[attention] head {} of the weights was asked for; there are {} heads", head, all);
    }
    if (!heads.empty()) return;
    heads.reserve(static_cast<size_t>(all));
    for (int64_t head = 0; head < all; ++head) heads.push_back(head);
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

Tensor weights_at_once(const Lowered& lowered, const Tensor& lse, Path path) {
  const LoweredSpec& lowered_spec = *lowered.spec;
  // A step of attention() on the fused path may well be differentiated here.
  const Path taken = path == Path::fused ? Path::automatic : path;
  if (!takes_kernel(lowered, lse, taken)) return composed_weights(lowered.parts, lowered_spec);
  Tensor weights =
      at::empty({lowered_spec.batch, lowered_spec.heads, lowered_spec.queries, lowered_spec.keys},
                lse.options());
  run_kernel(
      lowered, lse, {{}, 0, lowered_spec.queries},
      [&]<class S>(const kernels::Problem<S>& problem, const auto* rows_lse,
                   const kernels::Selection& chosen, int threads) {
        auto* data = pointer_of<kernels::Compute<S>>(weights);
        kernels::attention_weights<S>(
            problem, rows_lse, chosen,
            kernels::contiguous(data, lowered_spec.heads, lowered_spec.queries, lowered_spec.keys),
            threads);
      });
  return weights;
}

Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                         const AttentionSpec& spec, const Selection& selection) {
  const Request request(query, key, lse, spec, selection);
  const int64_t keys = request.lowered.spec->keys;
  Tensor weights;
  if (request.fused) {
    weights = request.empty({request.batch(), request.head_count(), request.rows, keys});
    request.with_kernel([&]<class S>(const kernels::Problem<S>& problem, const auto* rows_lse,
                                     const kernels::Selection& chosen, int threads) {
      auto* data = pointer_of<kernels::Compute<S>>(weights);
      kernels::attention_weights<S>(
          problem, rows_lse, chosen,
          kernels::contiguous(data, request.head_count(), request.rows, keys), threads);
    });
  } else {
    weights = request.composed();
  }
  return with_axes_of(weights.to(query.scalar_type()), query);
}

TopWeights attention_top(const Tensor& query, const Tensor& key, const Tensor& lse, int64_t count,
                         const AttentionSpec& spec, const Selection& selection) {
  if (count < 1) fail("[attention] the {} largest weights were asked for; 1 is the least", count);
  const Request request(query, key, lse, spec, selection);
  TopWeights top;
  if (request.fused) {
    top.weights = request.empty({request.batch(), request.head_count(), request.rows, count});
    top.keys = at::empty(top.weights.sizes(), at::kLong);
    request.with_kernel([&]<class S>(const kernels::Problem<S>& problem, const auto* rows_lse,
                                     const kernels::Selection& chosen, int threads) {
      kernels::attention_top<S>(problem, rows_lse, chosen, count,
                                pointer_of<kernels::Compute<S>>(top.weights),
                                pointer_of<int64_t>(top.keys), threads);
    });
  } else {
    top = composed_top(request.composed(), count);
  }
  return {with_axes_of(top.weights.to(query.scalar_type()), query), with_axes_of(top.keys, query)};
}

Tensor attention_argmax(const Tensor& query, const Tensor& key, const Tensor& lse,
                        const AttentionSpec& spec, const Selection& selection) {
  return attention_top(query, key, lse, 1, spec, selection).keys.squeeze(-1);
}

Tensor attention_entropy(const Tensor& query, const Tensor& key, const Tensor& lse,
                         const AttentionSpec& spec, const Selection& selection) {
  const Request request(query, key, lse, spec, selection);
  Tensor entropy;
  if (request.fused) {
    entropy = request.empty({request.batch(), request.head_count(), request.rows});
    request.with_kernel([&]<class S>(const kernels::Problem<S>& problem, const auto* rows_lse,
                                     const kernels::Selection& chosen, int threads) {
      kernels::attention_entropy<S>(problem, rows_lse, chosen,
                                    pointer_of<kernels::Compute<S>>(entropy), threads);
    });
  } else {
    const Tensor weights = request.composed();
    // 0 ln 0 is 0, with a derivative of 0.
    const Tensor positive = weights.masked_fill(weights == 0, 1.0);
    entropy = -(positive * positive.log()).sum(-1);
  }
  return with_axes_of(entropy, query);
}

Tensor attention_column_sums(const Tensor& query, const Tensor& key, const Tensor& lse,
                             const AttentionSpec& spec, const Selection& selection) {
  const Request request(query, key, lse, spec, selection);
  Tensor sums;
  if (request.fused) {
    sums = request.empty({request.batch(), request.head_count(), request.lowered.spec->keys});
    request.with_kernel([&]<class S>(const kernels::Problem<S>& problem, const auto* rows_lse,
                                     const kernels::Selection& chosen, int threads) {
      kernels::attention_column_sums<S>(problem, rows_lse, chosen,
                                        pointer_of<kernels::Compute<S>>(sums), threads);
    });
  } else {
    sums = request.composed().sum(2);
  }
  return with_axes_of(sums, query);
}

}  // namespace attend
