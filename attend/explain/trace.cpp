#include "attend/explain/trace.h"

#include <ATen/core/grad_mode.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/attention_watch.h"

namespace attend {
namespace {

using at::Tensor;

// Weights, lse or values [.., rows, columns] with axes of batch and heads.
Tensor with_heads(const Tensor& x) { return x.dim() == 4 ? x : x.unsqueeze(1); }

Tensor weights_of(const AttentionCall& call, const Selection& selection = {}) {
  return with_heads(attention_weights(call.query, call.key, call.result.lse, call.spec, selection));
}

const char* part_name(NetworkPart part) {
  switch (part) {
    case NetworkPart::none:
      return "";
    case NetworkPart::encoder:
      return "encoder";
    case NetworkPart::decoder:
      return "decoder";
    case NetworkPart::layers:
      return "layer";
    case NetworkPart::pooling:
      return "pooling";
  }
  return "";
}

// Keeps what one pass computes.
class Recorder {
 public:
  explicit Recorder(const TraceOptions& options) : options_(options) {}

  AttentionResult attend(const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionSpec& spec) {
    const Site& site = SiteScope::current();
    AttentionCall call{query, key, value, spec, attention(query, key, value, spec), site.output};
    replaced_ = Tensor();
    if (options_.weights && !spec.normaliser.row().running_sums) replace(site, call);
    ++calls_;
    AttentionResult result = call.result;
    if (!options_.attentions) return result;
    auto& all = trace_.attentions;
    if (all.empty() || !same_site(all.back().site, site)) all.push_back({site, {}});
    all.back().calls.push_back(std::move(call));
    return result;
  }

  // The weights that took the place of those of the last call, where these are its queries.
  Tensor weights(const Tensor& query) const {
    return replaced_.defined() && query.is_same(replaced_of_) ? replaced_ : Tensor();
  }

  Tensor vectors(WatchedVectors which, const Tensor& x) {
    if (which == WatchedVectors::step) {
      trace_.steps.push_back(x);
      return x;
    }
    const bool of_target = SiteScope::current().part == NetworkPart::decoder;
    Tensor result = x;
    if (which == WatchedVectors::input && of_target) return result;
    if (which == WatchedVectors::input && options_.input) result = options_.input(x);
    if (options_.gradients && !result.requires_grad()) result = result.detach().requires_grad_();
    if (which == WatchedVectors::input) trace_.input = result;
    if (which == WatchedVectors::layer && !of_target) trace_.layers.push_back(result);
    return result;
  }

  NetworkTrace take() { return std::move(trace_); }

 private:
  void replace(const Site& site, AttentionCall& call) {
    const Tensor weights = options_.weights(site, calls_, weights_of(call));
    if (!weights.defined()) return;
    Tensor values = with_heads(call.value);
    if (values.size(1) != weights.size(1))
      values = values.repeat_interleave(weights.size(1) / values.size(1), 1);
    const auto with_axes = [&](const Tensor& x) {
      return call.query.dim() == 4 ? x : x.squeeze(1);
    };
    call.result.context = with_axes(at::matmul(weights, values));
    replaced_ = with_axes(weights);
    replaced_of_ = call.query;
  }

  const TraceOptions& options_;
  NetworkTrace trace_;
  size_t calls_ = 0;
  Tensor replaced_, replaced_of_;  // other weights, and their queries
};

// What `compute` gives while the recorder watches.
Tensor while_watching(Recorder& recorder, bool gradients, const std::function<Tensor()>& compute) {
  const AttentionWatch attentions(
      [&](const Tensor& query, const Tensor& key, const Tensor& value, const AttentionSpec& spec) {
        return recorder.attend(query, key, value, spec);
      },
      [&](const Tensor& query) { return recorder.weights(query); });
  const VectorWatch vectors(
      [&](WatchedVectors which, const Tensor& x) { return recorder.vectors(which, x); });
  const at::AutoGradMode records(gradients);
  return compute();
}

}  // namespace

std::string TracedAttention::name() const {
  std::string result = part_name(site.part);
  if (site.layer > 0) result += ' ' + std::to_string(site.layer);
  return site.reads_source ? result + " over the source" : result;
}

bool TracedAttention::has_weights() const { return !calls[0].spec.normaliser.row().running_sums; }

bool TracedAttention::has_signed_weights() const {
  return calls[0].spec.normaliser.row().range == WeightRange::numbers;
}

int64_t TracedAttention::heads() const {
  if (in_steps()) return calls[0].heads();
  int64_t count = 0;
  for (const AttentionCall& call : calls) count += call.heads();
  return count;
}

int64_t TracedAttention::rows() const {
  const int64_t rows = calls[0].query.size(-2);
  return in_steps() ? rows * static_cast<int64_t>(calls.size()) : rows;
}

int64_t TracedAttention::columns() const { return calls[0].key.size(-2); }

Tensor traced_weights(const TracedAttention& attention, const std::vector<int64_t>& heads) {
  if (!attention.has_weights())
    fail("{} normalises by running sums, which form no weights; take a method of gradients",
         attention.name());
  const at::NoGradGuard not_recorded;  // else all of them are held
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const AttentionCall& call : attention.calls) {
    Selection selection;
    for (const int64_t head : heads)
      if (head >= first && head < first + call.heads()) selection.heads.push_back(head - first);
    if (!attention.in_steps()) first += call.heads();
    if (!heads.empty() && selection.heads.empty()) continue;
    parts.push_back(weights_of(call, selection).squeeze(0));
  }
  return at::cat(parts, attention.in_steps() ? 1 : 0);
}

Tensor traced_scope(const TracedAttention& attention) {
  const at::NoGradGuard not_recorded;
  std::vector<Tensor> parts;
  for (const AttentionCall& call : attention.calls)
    parts.push_back(with_heads(attention_scores(call.query, call.key, call.spec)).squeeze(0));
  return at::cat(parts, attention.in_steps() ? 1 : 0) != -INFINITY;
}

NetworkTrace trace_network(PairNetwork& network, const Batch& batch, const TraceOptions& options) {
  Recorder recorder(options);
  Tensor distributions =
      while_watching(recorder, options.gradients, [&] { return network.log_probabilities(batch); });
  NetworkTrace trace = recorder.take();
  trace.log_probabilities =
      distributions.gather(2, batch.target.to(distributions.device()).unsqueeze(2)).squeeze(2);
  trace.distributions = std::move(distributions);
  return trace;
}

Tensor trace_step(DecodingState& state, const Tensor& tokens, const TraceOptions& options) {
  Recorder recorder(options);
  return while_watching(recorder, options.gradients, [&] {
    return state.step(tokens, /*with_weights=*/false).log_probabilities;
  });
}

std::vector<std::unique_ptr<DecodingState>> trace_states(PairNetwork& network, const Batch& batch) {
  const TraceOptions plain{.attentions = false};
  Recorder recorder(plain);
  std::vector<std::unique_ptr<DecodingState>> states;
  while_watching(recorder, /*gradients=*/false, [&] {
    const auto state = network.start(batch.source, batch.source_lengths);
    const Tensor before = shift_right(batch.target);
    for (int64_t t = 0; t < before.size(1); ++t) {
      if (t > 0) state->step(before.select(1, t - 1), /*with_weights=*/false);
      states.push_back(state->joined({}));
      if (states.back() != nullptr) continue;
      states.clear();
      break;
    }
    return Tensor();
  });
  return states;
}

}  // namespace attend
