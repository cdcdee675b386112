#include "attend/nn/intra_attention.h"

#include <vector>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// query [B, Dq] over the past; keys are already mapped.
AttentionResult look_back(const Tensor& query, const PastSteps& past, const Score& score,
                          const Pass& pass) {
  const auto [context, lse] = pass.attention(score.map_query(query.unsqueeze(1)), past.keys,
                                             past.values, {.score = score.mapped()});
  return {context.squeeze(1), lse.squeeze(1)};
}

// Appends key [B, Dk] and value [B, Dv] as one step.
PastSteps followed_by(const PastSteps& past, const Tensor& key, const Tensor& value,
                      const Score& score) {
  return {at::cat({past.keys, score.map_key(key.unsqueeze(1))}, 1),
          at::cat({past.values, value.unsqueeze(1)}, 1)};
}

void check_sequence(const Tensor& x, const char* name) {
  if (x.dim() != 3 || x.size(1) == 0)
    fail("[intra-attention] {} have shape [{}]; they must be [B, T, D], T 1 or more", name,
         fmt::join(x.sizes(), ", "));
}

}  // namespace

IntraAttentionCell::IntraAttentionCell(int64_t input_depth, int64_t hidden, int64_t attention_depth,
                                       const std::string& score)
    : hidden_(hidden),
      attention_(register_module(
          "attention", std::make_shared<LearnedAttention>(
                           AttentionChoices{.score = score},
                           AttentionSizes{input_depth + hidden, hidden, attention_depth, 0}))),
      gates_(register_module("gates", torch::nn::Linear(hidden + input_depth, 4 * hidden))) {}

IntraAttentionCell::State IntraAttentionCell::start(int64_t batch) const {
  const auto options = gates_->weight.options().requires_grad(false);
  return {{attention_->score().map_key(at::zeros({batch, 0, hidden_}, options)),
           at::zeros({batch, 0, 2 * hidden_}, options)},
          at::zeros({batch, 2 * hidden_}, options)};
}

Tensor IntraAttentionCell::query(const Tensor& input, const State& state) const {
  return at::cat({input, state.read.narrow(1, 0, hidden_)}, 1);
}

std::pair<Tensor, IntraAttentionCell::State> IntraAttentionCell::step(const Tensor& input,
                                                                      const State& state,
                                                                      const Pass& pass) {
  const Score score = attention_->score();
  const Tensor read = look_back(query(input, state), state.tape, score, pass).context;
  const Tensor h_read = read.narrow(1, 0, hidden_), c_read = read.narrow(1, hidden_, hidden_);
  const std::vector<Tensor> gates = gates_->forward(at::cat({h_read, input}, 1)).chunk(4, 1);
  const Tensor c = gates[1].sigmoid() * c_read + gates[0].sigmoid() * gates[3].tanh();
  const Tensor h = gates[2].sigmoid() * c.tanh();
  return {h, {followed_by(state.tape, h, at::cat({h, c}, 1), score), read}};
}

Tensor IntraAttentionCell::weights(const Tensor& input, const State& state) const {
  const Score score = attention_->score();
  const Tensor asked = query(input, state);
  const Tensor lse = look_back(asked, state.tape, score, {}).lse;
  return attention_weights(score.map_query(asked.unsqueeze(1)), state.tape.keys, lse.unsqueeze(1),
                           {.score = score.mapped()})
      .squeeze(1);
}

Tensor IntraAttentionCell::forward(const Tensor& x, const Tensor& lengths, const Pass& pass) {
  check_sequence(x, "inputs");
  State state = start(x.size(0));
  std::vector<Tensor> hidden;
  hidden.reserve(static_cast<size_t>(x.size(1)));
  for (const Tensor& input : x.unbind(1)) {
    auto [h, next] = step(input, state, pass);
    hidden.push_back(h);
    state = std::move(next);
  }
  Tensor states = at::stack(hidden, 1);
  if (!lengths.defined()) return states;
  // Padding is at the end, and no step reads later steps.
  const Tensor padded =
      at::arange(x.size(1), lengths.options()).unsqueeze(0) >= lengths.unsqueeze(1);
  return states.masked_fill(padded.to(x.device()).unsqueeze(2), 0.0);
}

IntraDecoderAttention::IntraDecoderAttention(int64_t depth, const std::string& score,
                                             int64_t attention_depth)
    : attention_(register_module(
          "attention",
          std::make_shared<LearnedAttention>(AttentionChoices{.score = score},
                                             AttentionSizes{depth, depth, attention_depth, 0}))) {}

AttentionSpec IntraDecoderAttention::spec() const {
  return {.score = attention_->score(), .scope = causal(-1)};
}

AttentionResult IntraDecoderAttention::forward(const Tensor& states, const Pass& pass) const {
  check_sequence(states, "states");
  return pass.attention(states, states, states, spec());
}

Tensor IntraDecoderAttention::weights(const Tensor& states, const Tensor& lse) const {
  return attention_weights(states, states, lse, spec());
}

PastSteps IntraDecoderAttention::start(const Tensor& state) const {
  const Tensor none = at::zeros({state.size(0), 0, state.size(1)}, state.options());
  return {attention_->score().map_key(none), none};
}

std::pair<AttentionResult, PastSteps> IntraDecoderAttention::step(const Tensor& state,
                                                                  const PastSteps& past,
                                                                  const Pass& pass) const {
  const Score score = attention_->score();
  const PastSteps before = past.keys.defined() ? past : start(state);
  return {look_back(state, before, score, pass), followed_by(before, state, state, score)};
}

}  // namespace attend
