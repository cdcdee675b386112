#include <algorithm>
#include <utility>

#include "attend/explain/ablated_network-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Replaces the contexts of heads by zeros during one pass.
class SwitchedOff : public Watch {
 public:
  explicit SwitchedOff(const std::vector<AttentionHead>& off) : off_(off) {}

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    AttentionResult result = Watch::attention(call, rest);
    // Groups of heads are calls one after another, and so are the steps of a recurrent decoder.
    const TracedAttention alone{rest.site, {call}};
    first_head_ = rest.site == site_ && !alone.in_steps() ? first_head_ + heads_ : 0;
    site_ = rest.site;
    heads_ = call.heads();
    query_ = call.query;
    result.context = without(result.context);
    return result;
  }

  Tensor weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                 const AttentionSpec& spec, const Pass& rest) override {
    const Tensor weights = Watch::weights(query, key, lse, spec, rest);
    return query.is_same(query_) ? without(weights) : weights;
  }

 private:
  // The last call's context or weights, [B, heads, ..] or, of one head, [B, ..].
  Tensor without(const Tensor& x) const {
    Tensor left = x;
    for (const AttentionHead& one : off_) {
      const int64_t head = one.head - first_head_;
      if (!(one.site == site_) || head < 0 || head >= heads_) continue;
      if (query_.dim() < 4) return at::zeros_like(x);
      const Tensor mask = at::arange(heads_, x.device()).view({1, -1, 1, 1}) == head;
      left = left.masked_fill(mask, 0.0);
    }
    return left;
  }

  const std::vector<AttentionHead>& off_;
  Site site_;  // of the last call
  int64_t first_head_ = 0, heads_ = 0;
  Tensor query_;
};

class AblatedState : public DecodingState {
 public:
  AblatedState(std::unique_ptr<DecodingState> state, const std::vector<AttentionHead>& off)
      : state_(std::move(state)), off_(off) {}

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& pass) override {
    SwitchedOff watch(off_);
    return state_->step(tokens, with_weights, pass.watched_by(watch));
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    state_->reorder(rows, same_sources);
  }

 private:
  std::unique_ptr<DecodingState> state_;
  const std::vector<AttentionHead>& off_;
};

class AblatedNetwork : public PairNetwork {
 public:
  AblatedNetwork(std::shared_ptr<PairNetwork> network, std::vector<AttentionHead> off)
      : network_(register_module("network", std::move(network))), off_(std::move(off)) {}

  Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override {
    SwitchedOff watch(off_);
    return network_->objective(batch, pass.watched_by(watch), smoothing);
  }
  Tensor log_probabilities(const Batch& batch, const Pass& pass) override {
    SwitchedOff watch(off_);
    return network_->log_probabilities(batch, pass.watched_by(watch));
  }
  Tensor encodings(const Tensor& source, const Tensor& lengths, const Pass& pass) override {
    SwitchedOff watch(off_);
    return network_->encodings(source, lengths, pass.watched_by(watch));
  }
  std::unique_ptr<DecodingState> start(const Tensor& source, const Tensor& lengths,
                                       const Pass& pass) override {
    SwitchedOff watch(off_);
    return std::make_unique<AblatedState>(network_->start(source, lengths, pass.watched_by(watch)),
                                          off_);
  }

  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override {
    return network_->top_vectors(source_length, target_length);
  }
  std::vector<int64_t> with_surroundings(std::vector<int64_t> source) const override {
    return network_->with_surroundings(std::move(source));
  }
  bool wants_equal_lengths() const override { return network_->wants_equal_lengths(); }
  Tensor text_vector(const Tensor& vectors) const override {
    return network_->text_vector(vectors);
  }
  void place(const Devices& devices) override { network_->place(devices); }
  bool attends() const override { return network_->attends(); }
  bool copies() const override { return network_->copies(); }
  int64_t maximum_answer_length() const override { return network_->maximum_answer_length(); }

 private:
  std::shared_ptr<PairNetwork> network_;
  std::vector<AttentionHead> off_;
};

}  // namespace

std::shared_ptr<PairNetwork> ablated_network(std::shared_ptr<PairNetwork> network,
                                             std::vector<AttentionHead> off) {
  auto ablated = std::make_shared<AblatedNetwork>(std::move(network), std::move(off));
  ablated->eval();
  return ablated;
}

}  // namespace attend
