#include "attend/models/seq2seq.h"

#include <algorithm>
#include <cmath>

#include "attend/data/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t maxout_pieces = 2;  // Bahdanau et al. 2015, A.2.2

torch::nn::Embedding embedding(int64_t symbols, int64_t depth) {
  auto layer = torch::nn::Embedding(symbols, depth);
  torch::nn::init::normal_(layer->weight, 0, 1 / std::sqrt(static_cast<double>(depth)));
  return layer;
}

// The forward direction at the last symbol beside the backward direction at the first.
Tensor last_states(const Tensor& annotations, const Tensor& lengths) {
  const int64_t half = annotations.size(2) / 2;
  const Tensor last = (lengths - 1).to(annotations.device()).view({-1, 1, 1});
  const Tensor forward = annotations.slice(2, 0, half)
                             .gather(1, last.expand({annotations.size(0), 1, half}))
                             .squeeze(1);
  return at::cat({forward, annotations.select(1, 0).slice(1, half)}, 1);
}

}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqConfig& config, int64_t source_symbols, int64_t target_symbols)
    : dropout_(config.dropout), entropy_weight_(config.entropy_weight) {
  config.check();
  const int64_t hidden = config.hidden;
  const Cell cell = parse_cell(config.cell);
  if (config.attends()) query_parts_ = config.query_parts();
  state_first_ = has_part("state");
  source_embedding_ =
      register_module("source_embedding", embedding(source_symbols, config.embedding));
  target_embedding_ =
      register_module("target_embedding", embedding(target_symbols, config.embedding));
  encoder_ = register_module(
      "encoder", std::make_shared<BidirectionalEncoder>(cell, config.embedding, hidden,
                                                        config.encoder_layers, config.dropout));
  const bool context_enters = !state_first_ || has_part("context");
  decoder_ = register_module("decoder",
                             std::make_shared<RecurrentCell>(
                                 cell, config.embedding + (context_enters ? hidden : 0), hidden));
  initial_ =
      register_module("initial", torch::nn::Linear(hidden / 2, hidden * decoder_->state_size()));
  if (config.attends()) {
    const AttentionChoices choices = config.choices();
    attention_ = register_module(
        "attention", std::make_shared<AttentionNetwork>(choices, config.attention_sizes()));
    // The first guess of a symbol's log-likelihood is that of chance.
    if (choices.normaliser == "hard")
      reward_ = register_module("reward", std::make_shared<MovingAverage>(
                                              -std::log(static_cast<double>(target_symbols))));
  }
  maxout_ = register_module(
      "maxout", torch::nn::Linear(2 * hidden + config.embedding, maxout_pieces * hidden));
  output_ = register_module("output", torch::nn::Linear(hidden, target_symbols));
}

bool Seq2Seq::has_part(const char* name) const {
  return std::find(query_parts_.begin(), query_parts_.end(), name) != query_parts_.end();
}

std::pair<Seq2Seq::Memory, Seq2Seq::Decoder> Seq2Seq::encode(const Tensor& source,
                                                             const Tensor& lengths,
                                                             const Noise& noise) {
  const Tensor embedded = attend::dropout(source_embedding_->forward(source), dropout_, noise);
  const Tensor annotations =
      attend::dropout(encoder_->forward(embedded, lengths, noise), dropout_, noise);
  return remember(embedded, annotations, lengths);
}

std::pair<Seq2Seq::Memory, Seq2Seq::Decoder> Seq2Seq::remember(const Tensor& embedded,
                                                               const Tensor& annotations,
                                                               const Tensor& lengths) {
  Memory memory;
  memory.summary = last_states(annotations, lengths);
  if (attention_) memory.attention = attention_->prepare(annotations, annotations, lengths);
  if (has_part("extra")) memory.extra = embedded.select(1, 0);
  // s_0 = tanh(W_s h_1), h_1 the backward direction at the first symbol (A.2.2).
  const Tensor backward = memory.summary.slice(1, memory.summary.size(1) / 2);
  Decoder decoder{initial_->forward(backward).tanh().chunk(decoder_->state_size(), 1), {}, {}};
  if (has_part("context")) decoder.context = at::zeros_like(memory.summary);
  return {std::move(memory), std::move(decoder)};
}

Tensor Seq2Seq::query(const Decoder& decoder, const Tensor& state, const Tensor& embedded,
                      const Memory& memory) const {
  std::vector<Tensor> parts;
  parts.reserve(query_parts_.size());
  for (const std::string& part : query_parts_) {
    if (part == "previous_state") parts.push_back(decoder.recurrent[0]);
    if (part == "state") parts.push_back(state);
    if (part == "token") parts.push_back(embedded);
    if (part == "context") parts.push_back(decoder.context);
    if (part == "extra") parts.push_back(memory.extra);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

AttentionStep Seq2Seq::advance(const Tensor& embedded, const Memory& memory, Decoder& decoder,
                               const Noise& noise) {
  AttentionStep step;
  std::vector<Tensor> recurrent;
  if (state_first_) {
    const Tensor input =
        decoder.context.defined() ? at::cat({embedded, decoder.context}, 1) : embedded;
    recurrent = decoder_->forward(input, decoder.recurrent);
  }
  if (attention_) {
    const uint64_t seed = attention_->draws() ? draw_seed(noise) : 0;
    const Tensor& state = state_first_ ? recurrent[0] : decoder.recurrent[0];
    step = attention_->forward(query(decoder, state, embedded, memory), memory.attention,
                               decoder.attention, seed);
  } else {
    step.context = memory.summary;
  }
  if (!state_first_)
    recurrent = decoder_->forward(at::cat({embedded, step.context}, 1), decoder.recurrent);
  decoder.recurrent = std::move(recurrent);
  if (decoder.context.defined()) decoder.context = step.context;
  decoder.attention = step.carried;
  return step;
}

Tensor Seq2Seq::readout(const Tensor& state, const Tensor& embedded, const Tensor& context,
                        const Noise& noise) {
  const Tensor pieces = maxout_->forward(at::cat({state, embedded, context}, -1));
  const auto shape = pieces.sizes().vec();
  std::vector<int64_t> grouped(shape.begin(), shape.end() - 1);
  grouped.insert(grouped.end(), {shape.back() / maxout_pieces, maxout_pieces});
  return output_->forward(
      attend::dropout(std::get<0>(pieces.view(grouped).max(-1)), dropout_, noise));
}

Seq2Seq::Teaching Seq2Seq::teach(const Batch& batch, const Memory& memory, Decoder decoder,
                                 const Noise& noise) {
  const Tensor embedded =
      attend::dropout(target_embedding_->forward(symbols_before(batch.target)), dropout_, noise);
  std::vector<Tensor> states, contexts, log_probabilities, entropies;
  for (int64_t t = 0; t < embedded.size(1); ++t) {
    const AttentionStep step = advance(embedded.select(1, t), memory, decoder, noise);
    contexts.push_back(step.context);
    states.push_back(decoder.recurrent[0]);
    if (!reward_ || !noise) continue;
    const HardDraw draw = hard_draw(attention_->scores(step, memory.attention),
                                    attention_->weights(step, memory.attention));
    log_probabilities.push_back(draw.log_probability);
    entropies.push_back(draw.entropy);
  }
  Teaching result;
  result.logits = readout(at::stack(states, 1), embedded, at::stack(contexts, 1), noise);
  if (!entropies.empty()) result.draws = {at::stack(log_probabilities, 1), at::stack(entropies, 1)};
  return result;
}

Tensor Seq2Seq::logits(const Batch& batch, const Noise& noise) {
  auto [memory, decoder] = encode(batch.source, batch.source_lengths, noise);
  return teach(batch, memory, std::move(decoder), noise).logits;
}

Tensor Seq2Seq::logits_by_states(const Batch& batch, std::vector<Tensor>& states) {
  const Tensor embedded = source_embedding_->forward(batch.source);
  auto [memory, decoder] =
      remember(embedded, encoder_->unrolled(embedded, states), batch.source_lengths);
  return teach(batch, memory, std::move(decoder), {}).logits;
}

Tensor Seq2Seq::objective(const Batch& batch, const Noise& noise, double smoothing) {
  auto [memory, decoder] = encode(batch.source, batch.source_lengths, noise);
  const auto [logits, draws] = teach(batch, memory, std::move(decoder), noise);
  Tensor loss = sequence_loss(logits, batch.target, smoothing);
  if (!draws.entropy.defined()) return loss;
  const Tensor counts = batch.target != Vocabulary::padding;
  const Tensor rewards = logits.log_softmax(-1)
                             .gather(-1, batch.target.unsqueeze(-1))
                             .squeeze(-1)
                             .detach()
                             .masked_fill(counts.logical_not(), 0.0);
  const Tensor usual = rewards_to_go(counts.to(rewards.scalar_type())) * reward_->value();
  const Tensor signal = reinforce_loss(draws.log_probability, rewards_to_go(rewards), usual) -
                        entropy_weight_ * (draws.entropy * counts).sum() +
                        reward_->loss(rewards, counts);
  // It has a gradient to give and no meaning as a number.
  return loss + signal - signal.detach();
}

StepState Seq2Seq::start(const Tensor& source, const Tensor& lengths) {
  auto [memory, decoder] = encode(source, lengths, {});
  StepState result;
  result.carried = std::move(decoder.recurrent);
  result.memory = {memory.summary};
  if (decoder.context.defined()) result.carried.push_back(decoder.context);
  if (!attention_) return result;
  const AttentionMemory& read = memory.attention;
  result.memory.insert(result.memory.end(),
                       {read.keys, read.values, read.lengths.defined() ? read.lengths : lengths});
  if (memory.extra.defined()) result.memory.push_back(memory.extra);
  return result;
}

StepResult Seq2Seq::step(const Tensor& tokens, StepState& state, bool with_weights) {
  Memory memory;
  memory.summary = state.memory[0];
  if (attention_) memory.attention = {state.memory[1], state.memory[2], state.memory[3]};
  if (has_part("extra")) memory.extra = state.memory[4];
  auto carried = state.carried.begin() + decoder_->state_size();
  Decoder decoder{{state.carried.begin(), carried}, {}, {}};
  if (has_part("context")) decoder.context = *carried++;
  decoder.attention.assign(carried, state.carried.end());

  const Tensor embedded = target_embedding_->forward(tokens);
  const AttentionStep read = advance(embedded, memory, decoder, {});
  StepResult result;
  if (with_weights && attention_) result.weights = attention_->weights(read, memory.attention);
  result.log_probabilities =
      readout(decoder.recurrent[0], embedded, read.context, {}).log_softmax(-1);
  state.carried = std::move(decoder.recurrent);
  if (decoder.context.defined()) state.carried.push_back(decoder.context);
  state.carried.insert(state.carried.end(), decoder.attention.begin(), decoder.attention.end());
  return result;
}

Tensor sequence_loss(const Tensor& logits, const Tensor& target, double smoothing) {
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), target.reshape({-1}), {},
                                at::Reduction::Sum, Vocabulary::padding, smoothing);
}

}  // namespace attend
