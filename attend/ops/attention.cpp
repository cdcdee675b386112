#include "attend/ops/attention.h"

#include "attend/base/error.h"
#include "attend/ops/axes-inl.h"
#include "attend/ops/composed-inl.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/paths-inl.h"
#include "attend/ops/sequential-inl.h"

namespace attend {

using at::Tensor;

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
