#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/decomposition-inl.h"
#include "attend/explain/stopping-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Limit for all copies of a layer's vectors; an attention holds seven such tensors at a time.
constexpr int64_t max_numbers = 9'000'000;

// Computes the parts of all groups of vectors in one pass over copies of a pair. Copy 0 has the
// network's own vectors, copy i + 2 has the part of group i. Biases are added to every copy. Copy 1
// has only these until share_out() distributes them. The network is linearised at copy 0: attention
// weights, deviations of norms and gates are held, and activations become slopes through 0
// (Modarressi et al. 2023, 3).
class Decomposer : public Watch {
 public:
  // `has_decoder`: adds the group of all that a decoder reads.
  Decomposer(const VectorGroups& vectors, bool has_decoder)
      : vectors_(vectors), groups_(vectors.count() + (has_decoder ? 1 : 0)) {}

  int64_t copies() const { return groups_ + 2; }

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    AttentionCall held = call;
    for (Tensor* each : {&held.query, &held.key})
      if (is_of_copies(*each)) *each = whole_of(*each).expand_as(*each);
    return Watch::attention(held, rest);
  }

  Tensor normalised(const NormCall& call, const Pass& rest) override {
    if (!is_of_copies(call.x)) return Watch::normalised(call, rest);
    const Tensor whole = whole_of(call.x);
    Tensor all = share_out(call.x.clone());  // a copy: in pre-norm layers, the sum is read again
    if (call.centred) all.sub_(all.mean(-1, true));
    all.mul_(call.factors(whole));
    all[0].copy_(rest.normalised({whole, call.weight, call.bias, call.epsilon, call.centred})[0]);
    if (call.bias.defined()) add_shares(all, call.bias);
    return all;
  }

  Tensor activated(const Tensor& x, Tensor (*f)(const Tensor& x), const Pass& rest) override {
    if (!is_of_copies(x)) return Watch::activated(x, f, rest);
    const Tensor whole = whole_of(x).clone(), made = rest.activated(whole, f);
    Tensor all = share_out(x);
    all.mul_(at::where(whole == 0, at::zeros_like(whole), made / whole));
    all[0].copy_(made[0]);
    return all;
  }

  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    switch (which) {
      case WatchedVectors::layer:
        return rest.site.layer == 1 ? begun(x, rest.site.part == NetworkPart::decoder)
                                    : share_out(x);
      case WatchedVectors::gate:
      case WatchedVectors::context_gate:
        return is_of_copies(x) ? whole_of(x) : x;
      case WatchedVectors::bias:
        return is_of_copies(x) ? whole_of(x).expand_as(x) : x;
      case WatchedVectors::feed_forward:
        return share_out(x);
      case WatchedVectors::logits:
        finish(x);
        return x;
      default:
        return x;
    }
  }

  // Keeps the parts of these outputs for take().
  void finish(const Tensor& outputs) {
    made_ = {share_out(outputs.clone()).slice(0, 2), outputs[0]};
  }

  OutputParts take() { return std::move(made_); }

 private:
  // False before the first layer, when all copies are equal, and in experts, which read single
  // rows.
  bool is_of_copies(const Tensor& x) const { return has_begun_ && x.size(0) == copies(); }

  static Tensor whole_of(const Tensor& x) { return x.narrow(0, 0, 1); }

  // Distributes the biases of copy 1 among the parts.
  Tensor share_out(Tensor all) const {
    const Tensor added = all[1].clone();
    all.slice(0, 1).sub_(added);
    add_shares(all, added);
    return all;
  }

  // Each part gets a share of `added` in proportion to the magnitude of its product with it.
  void add_shares(Tensor& all, const Tensor& added) const {
    Tensor parts = all.slice(0, 2);
    std::vector<Tensor> each;
    for (const Tensor& part : parts.unbind())
      each.push_back((part * added).sum(-1, true).abs());  // one by one to save memory
    const Tensor products = at::stack(each), sums = products.sum(0, true);
    const Tensor even = at::full_like(products, 1.0 / static_cast<double>(groups_));
    parts.addcmul_(at::where(sums > 0, products / sums, even), added);
  }

  // In a decoder, all vectors belong to the last group.
  Tensor begun(const Tensor& x, bool in_decoder) {
    has_begun_ = true;
    const Tensor group = at::arange(groups_, x.options().dtype(at::kLong)).unsqueeze(1);
    const Tensor own =
        group == (in_decoder ? group[groups_ - 1] : vectors_.by_vector().to(x.device()));
    const Tensor whole = whole_of(x);
    return at::cat({whole, at::zeros_like(whole), whole * own.unsqueeze(2)});
  }

  const VectorGroups& vectors_;
  int64_t groups_;
  bool has_begun_ = false;
  OutputParts made_;
};

// Whether the parts add up. A function that the pass does not see is not linear.
bool is_sum(const OutputParts& made) {
  const double off = (made.parts.sum(0) - made.whole).abs().max().item<double>();
  return off <= 1e-3 * made.parts.abs().max().item<double>();
}

}  // namespace

OutputParts logit_parts(const Subject& subject, const VectorGroups& groups) {
  const at::NoGradGuard not_recorded;
  check_stopped();
  Decomposer watch(groups, /*has_decoder=*/true);
  subject.network().log_probabilities(repeated(subject.batch, watch.copies()),
                                      Pass{}.watched_by(watch));
  OutputParts made = watch.take();
  if (made.whole.dim() == 1) made = {made.parts.unsqueeze(1), made.whole.unsqueeze(0)};
  return made;
}

VectorGroups logit_groups(const Subject& subject, const NetworkTrace& trace,
                          const MethodChoice& choice) {
  const Tensor& vectors = trace.layers[0];
  return layer_groups(subject, vectors.size(1),
                      std::min(affordable_passes(subject, choice), max_numbers / vectors.numel()));
}

std::string no_parts_reason(const Subject& subject, const NetworkTrace& trace) {
  if (!trace.logits.defined())
    return "models of this type do not report the vectors of the output layer; take "
           "integrated_gradients";
  if (trace.layers.empty())
    return "the model has no layers of self-attention; take integrated_gradients";
  const int64_t vectors = trace.layers[0].size(1);
  return is_sum(logit_parts(subject, {0, vectors, vectors, (vectors + 1) / 2}))
             ? ""
             : "a part of the network is not a sum over its inputs; take integrated_gradients";
}

OutputParts text_vector_parts(const Subject& subject, const TextComparison& comparison,
                              const VectorGroups& groups) {
  const at::NoGradGuard not_recorded;
  check_stopped();
  Decomposer watch(groups, /*has_decoder=*/false);
  const Pass pass = Pass{}.watched_by(watch);
  const Batch copies = repeated(subject.batch, watch.copies());
  const Tensor vectors = subject.network().encodings(copies.source, copies.source_lengths, pass);
  watch.finish(comparison.text_vectors(vectors, pass));
  OutputParts made = watch.take();
  if (!is_sum(made))
    fail(
        "a part of the network is not a sum over its inputs, so the vector of a text cannot be "
        "split");
  return made;
}

VectorGroups text_groups(const Subject& subject, int64_t depth, const MethodChoice& choice) {
  return source_groups(subject, std::min(affordable_passes(subject, choice),
                                         max_numbers / (depth * subject.source_length())));
}

Tensor token_parts(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const VectorGroups groups = logit_groups(subject, trace, choice);
  const OutputParts made = logit_parts(subject, groups);
  const int64_t others = trace.distributions.size(2) - made.whole.size(1);
  const auto parts_of = [&](const Tensor& tokens) {  // [1, T]
    const Tensor logit = (tokens - others).to(made.parts.device());
    return made.parts.gather(2, logit.unsqueeze(2).expand({made.parts.size(0), -1, 1})).squeeze(2);
  };
  Tensor parts = parts_of(subject.batch.target);
  if (subject.against.defined()) parts = parts - parts_of(subject.against.unsqueeze(0));
  const int64_t before = subject.network().top_vectors_of(subject.batch).before_source;
  // The decoder's own part is after the parts of the groups.
  const Tensor amounts = groups.shared_out(float64_on_cpu(parts.slice(0, 0, groups.count()).t()));
  return amounts.narrow(1, before, subject.source_length());
}

}  // namespace attend
