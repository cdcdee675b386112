#include "attend/ops/attention.h"

#include "attend/base/error.h"
#include "attend/ops/form-inl.h"

namespace attend {
namespace {

using at::Tensor;

bool takes_fused_path(const Reduced& reduced, Path path) {
  if (path == Path::composed) return false;
  const std::string obstacle = why_not_fused(reduced.parts, *reduced.form);
  if (path == Path::fused && !obstacle.empty())
    fail("[attention] path is fused, but {}; take automatic or composed", obstacle);
  return obstacle.empty();
}

}  // namespace

AttentionResult attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionSpec& spec) {
  if (!value.defined()) fail("[attention] value is undefined");
  const Reduced reduced = reduce(query, key, value, spec);
  const auto [context, lse] = takes_fused_path(reduced, spec.path)
                                  ? fused_attention(reduced.parts, reduced.form)
                                  : composed_attention(reduced.parts, *reduced.form);
  return {with_axes_of(context.to(query.scalar_type()), query), with_axes_of(lse, query)};
}

Tensor attention_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  const Reduced reduced = reduce(query, key, {}, spec);
  return with_axes_of(composed_scores(reduced.parts, *reduced.form), query);
}

}  // namespace attend
