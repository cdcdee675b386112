#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/form-inl.h"

namespace attend {
namespace {

using at::Tensor;

void check_lse(const Tensor& lse, const Tensor& query) {
  if (!lse.defined() || lse.sizes() != query.sizes().slice(0, query.dim() - 1))
    fail("[attention] lse has shape {}, query [{}]; they must match but for the last axis",
         lse.defined() ? fmt::format("[{}]", fmt::join(lse.sizes(), ", ")) : "undefined",
         fmt::join(query.sizes(), ", "));
}

}  // namespace

Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                         const AttentionSpec& spec, const Selection&) {
  const Reduced reduced = reduce(query, key, {}, spec);
  check_lse(lse, query);
  const Form& form = *reduced.form;
  const Tensor normaliser = lse.reshape({form.batch, form.heads, form.queries});
  const Tensor weights = composed_weights(reduced.parts, form, normaliser);
  return with_axes_of(weights.to(query.scalar_type()), query);
}

}  // namespace attend
