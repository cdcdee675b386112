#include "attend/ops/attention.h"

#include "attend/base/error.h"
#include "attend/ops/form-inl.h"

namespace attend {

using at::Tensor;

AttentionResult attend_once(const Reduced& reduced, Path path) {
  const Parts& parts = reduced.parts;
  const auto& form = reduced.form;
  const bool linear = form->normaliser->running_sums;
  const std::string obstacle = linear ? why_not_running_sums(*form) : why_not_fused(parts, *form);
  if (path == Path::fused && !obstacle.empty())
    fail("[attention] path is fused, but {}; take automatic or composed", obstacle);
  if (path == Path::composed || !obstacle.empty()) return composed_attention(parts, *form);
  return linear ? linear_attention(parts, *form) : fused_attention(parts, form);
}

AttentionResult attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionSpec& spec) {
  if (!value.defined()) fail("[attention] value is undefined");
  const Reduced reduced = reduce(query, key, value, spec);
  const auto [context, lse] = runs_in_order(reduced) ? attention_in_order(reduced, spec.path)
                                                     : attend_once(reduced, spec.path);
  return {with_axes_of(context.to(query.scalar_type()), query), with_axes_of(lse, query)};
}

Tensor attention_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  const Reduced reduced = reduce(query, key, {}, spec);
  const Tensor scores = runs_in_order(reduced) ? scores_in_order(reduced)
                                               : composed_scores(reduced.parts, *reduced.form);
  const double temperature = folded_temperature(*reduced.form);
  return with_axes_of(temperature == 1 ? scores : scores * temperature, query);
}

}  // namespace attend
