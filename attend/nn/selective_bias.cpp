#include "attend/nn/selective_bias.h"

namespace attend {

using at::Tensor;

SelectiveBias selective_bias(const Tensor& query, const Tensor& key, const Score& score,
                             const Scope& scope, int64_t offset, const Tensor& total) {
  const Tensor scores = attention_scores(query, key, {.score = score, .scope = scope});
  const auto numbers = scores.options().dtype(at::kLong).requires_grad(false);
  const Tensor keys = at::arange(scores.size(3), numbers);
  const Tensor queries = at::arange(scores.size(2), numbers).view({-1, 1}) + offset;
  const Tensor kept = (keys < queries).logical_and(keys > 0);
  const Tensor rows = at::where(kept, at::relu(scores), at::zeros({}, scores.options()));
  const Tensor sums = rows.cumsum(2);
  const Tensor before = total.defined() ? total : at::zeros({}, scores.options());
  return {-(before + sums - rows), before + sums.slice(2, -1)};
}

}  // namespace attend
