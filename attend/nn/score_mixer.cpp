#include "attend/nn/score_mixer.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

// One product after another, so that the order of the sums does not depend on the batch.
Tensor convolved(const Tensor& scores, int64_t queries, const Tensor& kernel) {
  const int64_t rows = kernel.size(1), columns = kernel.size(2), keys = scores.size(3);
  const int64_t before = scores.size(2) - queries;
  const Tensor padded = at::constant_pad_nd(
      scores, {columns / 2, columns / 2, std::max<int64_t>(0, rows - 1 - before), 0});
  const int64_t first = std::max<int64_t>(0, before - (rows - 1));
  Tensor sum;
  for (int64_t a = 0; a < rows; ++a)
    for (int64_t b = 0; b < columns; ++b) {
      const Tensor part = padded.narrow(2, first + a, queries).narrow(3, b, keys);
      const Tensor factor = kernel.select(2, b).select(1, a).view({-1, 1, 1});
      sum = sum.defined() ? at::addcmul(sum, part, factor) : part * factor;
    }
  return sum;
}

Tensor mixed_heads(const Tensor& weights, const Tensor& mix) {
  const int64_t group = mix.size(1);
  const Tensor apart = weights.unflatten(1, {mix.size(0), group});
  Tensor sum;
  for (int64_t g = 0; g < group; ++g) {
    const Tensor part = apart.narrow(2, g, 1), factor = mix.select(1, g).unsqueeze(2).unsqueeze(3);
    sum = sum.defined() ? at::addcmul(sum, part, factor) : part * factor;
  }
  return sum.flatten(1, 2);
}

}  // namespace

Tensor mixed_weights(const Tensor& scores, int64_t queries, const Tensor& kernel,
                     const Tensor& mix) {
  const int64_t heads = scores.size(1);
  if (kernel.dim() != 3 || kernel.size(0) != heads || kernel.size(1) < 1 || kernel.size(2) % 2 == 0)
    fail("[score mixer] kernel has shape {}; {} heads need [{}, queries, keys] with odd keys",
         shape_of(kernel), heads, heads);
  if (mix.defined() &&
      (mix.dim() != 3 || mix.size(1) != mix.size(2) || mix.size(0) * mix.size(1) != heads))
    fail("[score mixer] mix has shape {}; {} heads need [groups, g, g], groups times g = {}",
         shape_of(mix), heads, heads);
  const Tensor outside = scores == -INFINITY;
  const Tensor own = outside.narrow(2, scores.size(2) - queries, queries);
  const Tensor mixed = convolved(scores.masked_fill(outside, 0), queries, kernel);
  // The first fill avoids NaN in rows without keys.
  const Tensor empty = own.all(3, /*keepdim=*/true);
  const Tensor weights = mixed.masked_fill(own.logical_and(empty.logical_not()), -INFINITY)
                             .softmax(3)
                             .masked_fill(own, 0);
  return mix.defined() ? mixed_heads(weights, mix) : weights;
}

ScoreMixer::ScoreMixer(const ScoreMixSizes& sizes, int64_t heads) : sizes_(sizes) {
  if (sizes.queries < 1 || sizes.keys < 1 || sizes.keys % 2 == 0 || sizes.heads < 1 || heads < 1 ||
      heads % sizes.heads != 0)
    fail(
        "[score mixer] got a kernel of {} queries and {} keys, and {} of {} heads; take 1 or more, "
        "an odd number of keys, and heads that divide",
        sizes.queries, sizes.keys, sizes.heads, heads);
  Tensor kernel = torch::zeros({heads, sizes.queries, sizes.keys});
  kernel.select(2, sizes.keys / 2).select(1, sizes.queries - 1).fill_(1);
  kernel_ = register_parameter("kernel", kernel);
  mix_ = register_parameter("mix", torch::eye(sizes.heads).repeat({heads / sizes.heads, 1, 1}));
}

Tensor ScoreMixer::attend(const Tensor& query, int64_t queries, const Tensor& key,
                          const Tensor& value, const AttentionSpec& spec, const Tensor& output,
                          const Pass& pass) const {
  const Tensor scores = attention_scores(query, key, {.score = spec.score, .scope = spec.scope});
  const Tensor weights = mixed_weights(scores, queries, kernel_, mix_).to(value.scalar_type());
  AttentionSpec own = spec;
  own.scope = shifted(spec.scope, query.size(2) - queries, queries);
  return pass.apply_weights(weights, value, own, output);
}

}  // namespace attend
