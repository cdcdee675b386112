#include "attend/ops/attention.h"

#include "attend/base/error.h"
#include "attend/ops/form-inl.h"

namespace attend {
namespace {

using at::Tensor;

AttentionResult run(const Reduced& reduced, Path path) {
  const auto& [parts, form] = reduced;
  const bool linear = form->normaliser->name == "linear";
  const std::string obstacle = path == Path::composed ? ""
                               : linear               ? why_not_running_sums(*form)
                                                      : why_not_fused(parts, *form);
  if (path == Path::fused && !obstacle.empty())
    fail("[attention] path is fused, but {}; take automatic or composed", obstacle);
  if (path == Path::composed || !obstacle.empty()) return composed_attention(parts, *form);
  return linear ? linear_attention(parts, *form) : fused_attention(parts, form);
}

}  // namespace

AttentionResult attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionSpec& spec) {
  if (!value.defined()) fail("[attention] value is undefined");
  const Reduced reduced = reduce(query, key, value, spec);
  const auto [context, lse] = run(reduced, spec.path);
  return {with_axes_of(context.to(query.scalar_type()), query), with_axes_of(lse, query)};
}

Tensor attention_scores(const Tensor& query, const Tensor& key, const AttentionSpec& spec) {
  const Reduced reduced = reduce(query, key, {}, spec);
  return with_axes_of(composed_scores(reduced.parts, *reduced.form), query);
}

}  // namespace attend
