#include "attend/explain/trace.h"

#include <ATen/core/grad_mode.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/explain/stopping-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Records one pass.
class Recorder : public AttentionTrace {
 public:
  explicit Recorder(const TraceOptions& options) : options_(options) {}

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    AttentionCall done = call;
    const bool has_weights = !call.spec.normaliser.row().running_sums;
    const bool holds = options_.hold_weights && has_weights;
    const auto held = [&](const Tensor& x) { return holds ? x.detach() : x; };
    done.result =
        rest.attention(held(call.query), held(call.key), call.value, call.spec, call.output);
    replaced_ = norm_.x = Tensor();
    if (options_.weights && has_weights) replace(rest.site, done);
    if (options_.gradients && !done.result.context.requires_grad())
      done.result.context = done.result.context.detach().requires_grad_();
    ++calls_;
    AttentionResult result = done.result;
    if (options_.keeps >= TraceParts::attentions) keep(rest.site, std::move(done));
    return result;
  }

  // Returns the replaced weights of the last call if `query` is its query.
  Tensor weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                 const AttentionSpec& spec, const Pass& rest) override {
    if (replaced_.defined() && query.is_same(replaced_of_)) return replaced_;
    const Tensor computed = Watch::weights(query, key, lse, spec, rest);
    return options_.hold_weights ? computed.detach() : computed;
  }

  Tensor normalised(const NormCall& call, const Pass& rest) override {
    norm_ = call;
    return Watch::normalised(call, rest);
  }

  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    switch (which) {
      case WatchedVectors::step:
        trace_.steps.push_back(x);
        return x;
      case WatchedVectors::logits:
        trace_.logits = x;
        return x;
      case WatchedVectors::attended:
        if (options_.keeps == TraceParts::blocks) keep_block(rest.site, x);
        return x;
      case WatchedVectors::top:
        trace_.last_stack.vectors.push_back(x);
        trace_.last_stack.part = rest.site.part;
        return x;
      case WatchedVectors::context_gate:
        if (options_.keeps >= TraceParts::attentions) attentions_.back().calls.back().factors = x;
        return x;
      case WatchedVectors::bias:
        return options_.hold_weights ? x.detach() : x;
      case WatchedVectors::gate:
      case WatchedVectors::feed_forward:
        return x;
      case WatchedVectors::input:
      case WatchedVectors::layer:
        break;
    }
    return entering(which, x, rest);
  }

  NetworkTrace take() {
    trace_.attentions = std::move(attentions_);
    return std::move(trace_);
  }

 private:
  Tensor entering(WatchedVectors which, const Tensor& x, const Pass& rest) {
    const bool in_decoder = rest.site.part == NetworkPart::decoder;
    Tensor result = x;
    if (which == WatchedVectors::input && in_decoder) return result;
    if (which == WatchedVectors::input && options_.input) result = options_.input(x);
    if (options_.gradients && !result.requires_grad()) result = result.detach().requires_grad_();
    if (which == WatchedVectors::input) trace_.input = result;
    if (which == WatchedVectors::layer && !in_decoder) trace_.layers.push_back(result);
    if (which == WatchedVectors::layer) {
      added_to_ = result.detach();
      keep_in_stack(rest.site, added_to_);
    }
    return result;
  }

  void keep_in_stack(const Site& site, const Tensor& x) {
    if (site.layer == 1) trace_.last_stack.vectors.clear();
    trace_.last_stack.vectors.push_back(x);
  }

  // A norm after the attention belongs to the sum.
  void keep_block(const Site& site, const Tensor& x) {
    TracedBlock block{site, added_to_, x.detach(), {}};
    if (norm_.x.defined()) {
      block.scale = norm_.factors(norm_.x).detach();
      block.centred = norm_.centred;
    }
    added_to_ = block.output;
    trace_.blocks.push_back(std::move(block));
  }

  void replace(const Site& site, AttentionCall& call) {
    const Tensor weights = options_.weights(
        site, calls_,
        with_heads(attention_weights(call.query, call.key, call.result.lse, call.spec)));
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
  Tensor replaced_, replaced_of_;  // weights that replace others, and their queries
  Tensor added_to_;                // residual input of the next attention
  NormCall norm_{};                // last norm since the attention; x is undefined if there is none
};

}  // namespace

Tensor with_heads(const Tensor& x) { return x.dim() == 4 ? x : x.unsqueeze(1); }

Tensor traced_weights(const TracedAttention& attention, const std::vector<int64_t>& heads) {
  if (!attention.has_weights())
    fail("{} normalises by running sums, which form no weights; take a method of gradients",
         attention.name());
  const at::NoGradGuard not_recorded;  // else autograd keeps all weights
  return attention.weights(heads).squeeze(0);
}

Tensor traced_scope(const TracedAttention& attention) {
  const at::NoGradGuard not_recorded;
  std::vector<Tensor> parts;
  for (const AttentionCall& call : attention.calls)
    parts.push_back(with_heads(attention_scores(call.query, call.key, call.spec)).squeeze(0));
  return at::cat(parts, attention.in_steps() ? 1 : 0) != -INFINITY;
}

NetworkTrace trace_network(PairNetwork& network, const Batch& batch, const TraceOptions& options) {
  check_stopped();
  Recorder recorder(options);
  const Tensor distributions = [&] {
    const at::AutoGradMode records(options.gradients || options.weight_gradients);
    return network.log_probabilities(batch, Pass{}.watched_by(recorder));
  }();
  NetworkTrace trace = recorder.take();
  trace.log_probabilities =
      distributions.gather(2, batch.target.to(distributions.device()).unsqueeze(2)).squeeze(2);
  trace.distributions = distributions;
  return trace;
}

Tensor trace_step(DecodingState& state, const Tensor& tokens, const TraceOptions& options) {
  check_stopped();
  Recorder recorder(options);
  const at::AutoGradMode records(options.gradients || options.weight_gradients);
  return state.step(tokens, /*with_weights=*/false, Pass{}.watched_by(recorder)).log_probabilities;
}

std::vector<std::unique_ptr<DecodingState>> trace_states(PairNetwork& network, const Batch& batch) {
  const at::NoGradGuard not_recorded;
  Watch unused;  // so that steps are computed as in later watched passes
  const Pass pass = Pass{}.watched_by(unused);
  std::vector<std::unique_ptr<DecodingState>> states;
  const auto state = network.start(batch.source, batch.source_lengths, pass);
  const Tensor before = shift_right(batch.target);
  for (int64_t t = 0; t < before.size(1); ++t) {
    if (t > 0) state->step(before.select(1, t - 1), /*with_weights=*/false, pass);
    states.push_back(state->joined({}));
    if (states.back() == nullptr) return {};
  }
  return states;
}

}  // namespace attend
