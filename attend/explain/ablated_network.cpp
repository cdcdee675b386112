#include <algorithm>
#include <optional>
#include <utility>

#include "attend/explain/ablated_network-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Bool [count]: which of the numbers from first + 1 are in the range.
Tensor held_places(const std::optional<NumberRange>& range, int64_t first, int64_t count) {
  const NumberRange all = range.value_or(NumberRange{});
  const Tensor numbers = at::arange(first + 1, first + 1 + count);
  return (numbers >= all.first).logical_and(numbers <= all.last);
}

// Replaces the contexts of heads, and subtracts what edges carry from them, during one pass.
class SwitchedOff : public Watch {
 public:
  // `steps`: number of decoding steps before this pass.
  SwitchedOff(const std::vector<SwitchedOffHead>& off, int64_t steps) : off_(off), steps_(steps) {}

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    AttentionResult result = Watch::attention(call, rest);
    // An attention is called once per group of heads, or once per step of a recurrent decoder.
    const bool in_steps = TracedAttention{rest.site, {call}}.in_steps();
    first_head_ = rest.site == site_ && !in_steps ? first_head_ + heads_ : 0;
    site_ = rest.site;
    heads_ = call.heads();
    query_ = call.query;
    first_query_ = queries_before(call, in_steps);
    const Tensor edges = edges_off(call.query.size(-2), call.key.size(-2));
    if (edges.defined()) {
      const Tensor weights =
          with_heads(attention_weights(call.query, call.key, result.lse, call.spec));
      Tensor values = with_heads(call.value);
      values = values.repeat_interleave(heads_ / values.size(1), 1);
      const Tensor carried = at::matmul(weights * edges.to(weights.options()), values);
      result.context = result.context - carried.view_as(result.context);
    }
    result.context = without_heads(result.context, /*are_contexts=*/true);
    return result;
  }

  Tensor weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                 const AttentionSpec& spec, const Pass& rest) override {
    Tensor weights = Watch::weights(query, key, lse, spec, rest);
    if (!query.is_same(query_)) return weights;
    const Tensor edges = edges_off(query.size(-2), key.size(-2));
    const Tensor left =
        edges.defined()
            ? with_heads(weights).masked_fill(edges.to(weights.device()), 0.0).view_as(weights)
            : weights;
    return without_heads(left, /*are_contexts=*/false);
  }

 private:
  // Number of queries in earlier steps.
  int64_t queries_before(const AttentionCall& call, bool in_steps) {
    const int64_t rows = call.query.size(-2);
    if (site_.layer > 0 && !site_.reads_source) return call.key.size(-2) - rows;
    if (!in_steps) return steps_;
    const auto seen = std::find_if(seen_.begin(), seen_.end(),
                                   [&](const auto& one) { return one.first == site_; });
    if (seen != seen_.end()) return steps_ + (seen->second += rows) - rows;
    seen_.emplace_back(site_, rows);
    return steps_;
  }

  // Index of the head in the last call; out of range if the call lacks the head.
  int64_t index_of(const AttentionHead& one) const {
    return one.site == site_ ? one.head - first_head_ : -1;
  }

  // Edges that are off, bool [1, heads, rows, keys] of the last call; undefined: none.
  Tensor edges_off(int64_t rows, int64_t keys) const {
    Tensor edges;
    for (const auto& [one, instead] : off_) {
      const int64_t head = index_of(one);
      if (one.is_whole() || head < 0 || head >= heads_) continue;
      if (!edges.defined()) edges = at::zeros({1, heads_, rows, keys}, at::kBool);
      edges[0][head].logical_or_(held_places(one.queries, first_query_, rows)
                                     .unsqueeze(1)
                                     .logical_and(held_places(one.keys, 0, keys)));
    }
    return edges;
  }

  // Replaces heads in the last call's context or weights, [B, heads, ..] or, of one head, [B, ..].
  Tensor without_heads(const Tensor& x, bool are_contexts) const {
    Tensor left = x;
    for (const auto& [one, instead] : off_) {
      const int64_t head = index_of(one);
      if (!one.is_whole() || head < 0 || head >= heads_) continue;
      const Tensor other =
          are_contexts && instead.defined() ? instead.to(x.options()) : at::zeros({}, x.options());
      if (query_.dim() < 4) return other.expand_as(x).contiguous();
      const Tensor mask = at::arange(heads_, x.device()).view({1, -1, 1, 1}) == head;
      left = at::where(mask, other, left);
    }
    return left;
  }

  const std::vector<SwitchedOffHead>& off_;
  int64_t steps_;
  Site site_;  // site of the last call
  int64_t first_head_ = 0, heads_ = 0, first_query_ = 0;
  Tensor query_;
  std::vector<std::pair<Site, int64_t>> seen_;  // rows of earlier calls in this pass
};

class AblatedState : public DecodingState {
 public:
  AblatedState(std::unique_ptr<DecodingState> state, const std::vector<SwitchedOffHead>& off)
      : state_(std::move(state)), off_(off) {}

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& pass) override {
    SwitchedOff watch(off_, steps_++);
    return state_->step(tokens, with_weights, pass.watched_by(watch));
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    state_->reorder(rows, same_sources);
  }

 private:
  std::unique_ptr<DecodingState> state_;
  const std::vector<SwitchedOffHead>& off_;
  int64_t steps_ = 0;
};

class AblatedNetwork : public PairNetwork {
 public:
  AblatedNetwork(std::shared_ptr<PairNetwork> network, std::vector<SwitchedOffHead> off)
      : network_(register_module("network", std::move(network))), off_(std::move(off)) {}

  Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override {
    SwitchedOff watch(off_, 0);
    return network_->objective(batch, pass.watched_by(watch), smoothing);
  }
  Tensor log_probabilities(const Batch& batch, const Pass& pass) override {
    SwitchedOff watch(off_, 0);
    return network_->log_probabilities(batch, pass.watched_by(watch));
  }
  Tensor encodings(const Tensor& source, const Tensor& lengths, const Pass& pass) override {
    SwitchedOff watch(off_, 0);
    return network_->encodings(source, lengths, pass.watched_by(watch));
  }
  std::unique_ptr<DecodingState> start(const Tensor& source, const Tensor& lengths,
                                       const Pass& pass) override {
    SwitchedOff watch(off_, 0);
    return std::make_unique<AblatedState>(network_->start(source, lengths, pass.watched_by(watch)),
                                          off_);
  }

  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override {
    return network_->top_vectors(source_length, target_length);
  }
  TopVectors top_vectors_of(const Batch& batch) const override {
    return network_->top_vectors_of(batch);
  }
  std::vector<int64_t> with_surroundings(std::vector<int64_t> source) const override {
    return network_->with_surroundings(std::move(source));
  }
  bool wants_equal_lengths() const override { return network_->wants_equal_lengths(); }
  Tensor text_vector(const Tensor& vectors) const override {
    return network_->text_vector(vectors);
  }
  const ContactHead* contact_head() const override { return network_->contact_head(); }
  void place(const Devices& devices) override { network_->place(devices); }
  bool attends() const override { return network_->attends(); }
  bool copies() const override { return network_->copies(); }
  int64_t maximum_answer_length() const override { return network_->maximum_answer_length(); }

 private:
  std::shared_ptr<PairNetwork> network_;
  std::vector<SwitchedOffHead> off_;
};

}  // namespace

std::shared_ptr<PairNetwork> ablated_network(std::shared_ptr<PairNetwork> network,
                                             std::vector<SwitchedOffHead> off) {
  auto ablated = std::make_shared<AblatedNetwork>(std::move(network), std::move(off));
  ablated->eval();
  return ablated;
}

}  // namespace attend
