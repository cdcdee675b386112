#include "attend/ops/attention.h"

#include "attend/base/error.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/lower-inl.h"

namespace attend {

using at::Tensor;

AttentionResult attention_at_once(const Lowered& lowered, Path path) {
  const Parts& parts = lowered.parts;
  const auto& lowered_spec = lowered.spec;
  const bool linear = lowered_spec->normaliser->running_sums;
  const BackendChoice fused = linear ? BackendChoice{nullptr, why_not_running_sums(*lowered_spec)}
                                     : fused_backend(parts, *lowered_spec);
  if (path == Path::fused && !fused.obstacle.empty())
    fail("[attention] path is fused, but {}; take automatic or composed", fused.obstacle);
  if (path == Path::composed || !fused.obstacle.empty())
    return composed_attention(parts, *lowered_spec);
  return linear ? linear_attention(parts, *lowered_spec)
                : fused_attention(*fused.backend, parts, lowered_spec);
}

AttentionResult attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionSpec& spec) {
  if (!value.defined()) fail("[attention] value is undefined");
  const Lowered lowered = lower(query, key, value, spec);
  const WithoutAutocast no_autocast;
  const auto [context, lse] = runs_in_order(lowered) ? attention_in_order(lowered, spec.path)
                                                     : attention_at_once(lowered, spec.path);
  return {with_axes_of(context.to(lowered.spec->stored), query), with_axes_of(lse, query)};
}

Tensor attention_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  const Lowered lowered = lower(query, key, {}, spec);
  const WithoutAutocast no_autocast;
  const Tensor scores = runs_in_order(lowered) ? scores_in_order(lowered)
                                               : composed_scores(lowered.parts, *lowered.spec);
  const double temperature = folded_temperature(*lowered.spec);
  return with_axes_of(temperature == 1 ? scores : scores * temperature, query);
}

}  // namespace attend
