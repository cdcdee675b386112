#include "attend/explain/contacts.h"

#include <ATen/core/grad_mode.h>

#include "attend/base/error.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/stopping-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Symmetric, without the product of the means of row and column.
Tensor corrected(const Tensor& map) {
  const Tensor sums = map + map.t(), rows = sums.sum(1, /*keepdim=*/true);
  const auto total = rows.sum().item<double>();
  return total > 0 ? sums - rows * rows.t() / total : sums;
}

}  // namespace

Tensor contact_probabilities(const ContactHead& head,
                             const std::vector<TracedAttention>& attentions, int64_t first,
                             int64_t count) {
  const at::NoGradGuard not_recorded;
  const Tensor factors = head.weight[0].to(at::kCPU, at::kDouble);
  const auto* factor = factors.data_ptr<double>();
  int64_t heads = 0;
  for (const TracedAttention& one : attentions)
    if (one.site.part == NetworkPart::encoder && is_self_attention(one.site)) heads += one.heads();
  if (heads != factors.numel())
    fail("contacts: the attentions have {} heads, and the contact head reads {}", heads,
         factors.numel());
  Tensor logits = at::full({count, count}, head.bias.item<double>(), at::kDouble);
  for (const TracedAttention& one : attentions) {
    if (one.site.part != NetworkPart::encoder || !is_self_attention(one.site)) continue;
    for (int64_t number = 0; number < one.heads(); ++number) {
      check_stopped();
      const Tensor map = one.weights({number})[0][0].to(at::kCPU, at::kDouble);
      logits.add_(corrected(map.narrow(0, first, count).narrow(1, first, count)), *factor++);
    }
  }
  return logits.sigmoid();
}

ContactMap contact_map(const Explanation& explanation) {
  const Subject& subject = explanation.subject();
  const ContactHead* head = subject.network().contact_head();
  if (head == nullptr)
    fail(
        "view contacts: the model has no contact head; import a model of ESM-2 with the tensors "
        "contact_head.regression");
  const auto [before, after] = special_tokens(subject);
  const int64_t count = subject.source_length() - before - after;
  if (count == 0) fail("view contacts: the source has no token to show; give a longer one");
  const int64_t first = before + subject.network().top_vectors_of(subject.batch).before_source;
  const auto tokens = subject.source.begin() + before;
  return {{tokens, tokens + count},
          contact_probabilities(*head, explanation.trace(TraceParts::attentions).attentions, first,
                                count)};
}

}  // namespace attend
