#include "attend/nn/key_indexer.h"

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

Tensor pairs_of(const Scope& scope, const Tensor& scores) {
  return scope_mask(scope, scores.size(0), 1, scores.size(2), scores.size(3), scores.device());
}

}  // namespace

Tensor top_keys(const Tensor& scores, const Tensor& candidates, int64_t count) {
  if (count < 1) fail("[key indexer] a query reads {} keys; 1 is the least", count);
  Tensor worth = scores.detach();
  if (candidates.defined()) worth = worth.masked_fill(candidates.logical_not(), -INFINITY);
  const Tensor taken =
      std::get<1>(at::sort(worth, /*stable=*/true, /*dim=*/-1, /*descending=*/true))
          .narrow(-1, 0, std::min(count, worth.size(-1)));
  const Tensor present = worth != -INFINITY;
  return at::zeros_like(present).scatter(-1, taken, present.gather(-1, taken));
}

KeyIndexer::KeyIndexer(const KeyIndexerSizes& sizes, int64_t query_depth, int64_t source_depth)
    : sizes_(sizes) {
  if (sizes.keys < 1 || sizes.heads < 1 || sizes.depth < 1)
    fail("[key indexer] got {} keys per query, {} heads of depth {}; each must be 1 or more",
         sizes.keys, sizes.heads, sizes.depth);
  const auto add = [&](const char* name, int64_t from, int64_t to) {
    return register_module(name, xavier_linear(from, to));
  };
  query_ = add("query", query_depth, sizes.heads * sizes.depth);
  key_ = add("key", source_depth, sizes.depth);
  weight_ = add("weight", query_depth, sizes.heads);
}

Tensor KeyIndexer::keys(const Tensor& source, const Pass& pass) {
  return key_->forward(source.detach(), pass).unsqueeze(1);
}

Tensor KeyIndexer::scores(const Tensor& input, const Tensor& keys, const Pass& pass) {
  const Tensor in = input.detach();
  const Tensor query =
      query_->forward(in, pass).unflatten(2, {sizes_.heads, sizes_.depth}).transpose(1, 2);
  const Tensor weight = weight_->forward(in, pass).transpose(1, 2).unsqueeze(3);
  Tensor sum;
  for (int64_t h = 0; h < sizes_.heads; ++h) {  // one by one to save memory
    const Tensor part =
        weight.narrow(1, h, 1) * at::matmul(query.narrow(1, h, 1), keys.transpose(2, 3)).relu();
    sum = sum.defined() ? sum + part : part;
  }
  return sum / std::sqrt(static_cast<double>(sizes_.depth));
}

Scope KeyIndexer::chosen(const Tensor& scores, const Scope& scope) const {
  if (scores.size(3) <= sizes_.keys) return scope;
  const Tensor taken = top_keys(scores, pairs_of(scope, scores), sizes_.keys).cpu();
  const Tensor ends = at::cat({at::zeros({1}, at::kLong), taken.sum(-1).flatten().cumsum(0)});
  const Tensor offsets = ends.unfold(0, scores.size(2) + 1, scores.size(2)).unsqueeze(1);
  return edges(offsets.contiguous(), taken.nonzero().select(1, 3).contiguous());
}

Tensor KeyIndexer::divergence(const Tensor& scores, const Scope& scope, const Tensor& weights,
                              const Tensor& lengths) {
  const Tensor mean = weights.detach().mean(1, /*keepdim=*/true);
  const Tensor pairs = pairs_of(scope, scores);
  Tensor seen = scores;
  if (pairs.defined()) seen = seen.masked_fill(pairs.logical_not(), -INFINITY);
  const Tensor log_shares = seen.log_softmax(-1).masked_fill(mean <= 0, 0.0);
  const Tensor logs = at::where(mean > 0, mean, at::ones_like(mean)).log();
  const Tensor rows = (mean * (logs - log_shares)).sum(-1).squeeze(1);  // [B, Tq]
  if (!lengths.defined()) return rows.mean();
  const Tensor present =
      at::arange(rows.size(1), lengths.options()).unsqueeze(0).lt(lengths.unsqueeze(1)).to(rows);
  return (rows * present).sum() / present.sum().clamp_min(1);
}

}  // namespace attend
