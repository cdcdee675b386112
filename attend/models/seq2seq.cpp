#include "attend/models/seq2seq.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/decode/packed_output.h"
#include "attend/decode/packed_recurrent.h"
#include "attend/nn/multi_head_state.h"
#include "attend/nn/pointer.h"
#include "attend/nn/positions.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

constexpr Site reading_source{NetworkPart::decoder, 0, true};
constexpr int64_t maxout_pieces = 2;  // Bahdanau et al. 2015, A.2.2

torch::nn::Embedding embedding(int64_t tokens, int64_t depth) {
  auto layer = torch::nn::Embedding(tokens, depth);
  torch::nn::init::normal_(layer->weight, 0, 1 / std::sqrt(static_cast<double>(depth)));
  return layer;
}

// The backward direction at the first token, which has read the whole source.
Tensor backward_state(const Tensor& annotations) {
  return annotations.select(1, 0).slice(1, annotations.size(2) / 2);
}

// The annotations [B, S, D] of each source's last token, [B, D].
Tensor at_last(const Tensor& annotations, const Tensor& lengths) {
  const Tensor last = (lengths - 1).to(annotations.device()).view({-1, 1, 1});
  return annotations.gather(1, last.expand({annotations.size(0), 1, annotations.size(2)}))
      .squeeze(1);
}

// Concatenates the forward direction at the last token and the backward direction at the first.
Tensor last_states(const Tensor& annotations, const Tensor& lengths) {
  const Tensor forward = annotations.slice(2, 0, annotations.size(2) / 2);
  return at::cat({at_last(forward, lengths), backward_state(annotations)}, 1);
}

// Mean over positions without padding.
Tensor mean_state(const Tensor& annotations, const Tensor& lengths) {
  const Tensor count = lengths.to(annotations.device()).unsqueeze(1);
  const Tensor inside = at::arange(annotations.size(1), count.options()) < count;
  return (annotations * inside.unsqueeze(2)).sum(1) / count;
}

}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqConfig& config, const SourceShape& source, int64_t target_tokens)
    : dropout_(config.dropout),
      entropy_weight_(config.entropy_weight),
      coverage_weight_(config.coverage_weight),
      extra_depth_(config.source_depth()) {
  config.check();
  if (const auto* image = source.as<ImageForm>()) grid_ = {image->rows, image->columns};
  if (source.as<NeighbourForm>() != nullptr)
    fail("model.type is seq2seq, which does not read bonds; take transformer, classifier or set");
  if (config.wants_joint_vocabulary() && source.tokens() != target_tokens)
    fail(
        "model.tied is {} and model.copy {}, with {} source and {} target tokens; one vocabulary "
        "for both takes data.joint_vocabulary = true",
        name_of(config.tied), config.copy, source.tokens(), target_tokens);
  if (config.attends()) query_parts_ = config.query_parts();
  state_first_ = has_part(QueryVector::state);
  carries_context_ = has_part(QueryVector::context) || config.input_feeding;
  source_embedding_ =
      register_module("source_embedding",
                      std::make_shared<SourceInput>(source, config.source_depth(), config.image));
  if (!shares_inputs(config.tied))
    target_embedding_ =
        register_module("target_embedding", embedding(target_tokens, config.embedding));
  if (config.encoder == Annotations::recurrent)
    encoder_ = register_module(
        "encoder", std::make_shared<BidirectionalEncoder>(
                       config.cell, config.embedding, config.hidden,
                       RecurrentLayers{config.encoder_layers, config.dropout, config.residual,
                                       /*backward=*/!config.plain}));
  if (config.self_layers > 0)
    self_ = register_module("self", std::make_shared<TransformerStack>(config.self_stack()));
  make_decoder(config);
  if (config.attends()) {
    const AttentionChoices choices = config.choices();
    attention_ = register_module(
        "attention", std::make_shared<StepAttention>(choices, config.attention_sizes()));
    // The initial baseline of a token's log-likelihood is chance level.
    if (Normaliser(choices.normaliser).row().training == Training::reward)
      reward_ = register_module(
          "reward", std::make_shared<MovingAverage>(-std::log(static_cast<double>(target_tokens))));
  }
  make_readout(config, target_tokens);
}

void Seq2Seq::make_decoder(const Seq2SeqConfig& config) {
  const int64_t hidden = config.hidden;
  const bool context_enters = !config.plain && (!state_first_ || carries_context_);
  decoder_ = register_module(
      "decoder", std::make_shared<RecurrentCell>(
                     config.cell, config.embedding + (context_enters ? hidden : 0), hidden,
                     RecurrentLayers{config.decoder_layers, config.dropout, config.residual}));
  if (config.plain) return;
  initial_ = register_module(
      "initial", Linear(encoder_ ? hidden / 2 : hidden, hidden * decoder_->state_size()));
}

void Seq2Seq::make_readout(const Seq2SeqConfig& config, int64_t target_tokens) {
  const int64_t hidden = config.hidden, read = 2 * hidden + config.embedding;
  const bool tied = shares_output(config.tied);
  const int64_t depth = tied ? config.embedding : hidden;
  if (config.intra_decoder)
    past_ = register_module("past", std::make_shared<IntraDecoderAttention>(hidden));
  if (config.plain) {
    output_ = register_module("output", Linear(hidden, target_tokens));
    return;
  }
  maxout_ = register_module("maxout", Linear(read + (past_ ? hidden : 0), maxout_pieces * depth));
  if (tied)
    output_bias_ = register_parameter("output_bias", torch::zeros({target_tokens}));
  else
    output_ = register_module("output", Linear(depth, target_tokens));
  if (config.copy) gate_ = register_module("gate", Linear(read, 1));
}

void Seq2Seq::place(const Devices& devices) {
  if (!target_embedding_ && devices.encoder != devices.decoder)
    fail("encoder and decoder share an embedding by model.tied; place both on {}",
         devices.decoder.str());
  devices_ = devices;
  to(devices.decoder);
  source_embedding_->to(devices.encoder);
  if (encoder_) encoder_->to(devices.encoder);
  if (self_) self_->to(devices.encoder);
  if (attention_) attention_->to(devices.attention);
}

bool Seq2Seq::has_part(QueryVector part) const {
  return std::find(query_parts_.begin(), query_parts_.end(), part) != query_parts_.end();
}

Tensor Seq2Seq::placed(const Tensor& embedded) const {
  if (grid_.height > 0)
    return embedded + sinusoidal_grid(grid_, embedded.size(2), embedded.options());
  return embedded + sinusoidal_positions(embedded.size(1), embedded.size(2), 0, embedded.options());
}

const Tensor& Seq2Seq::target_weight() const {
  return target_embedding_ ? target_embedding_->weight : source_embedding_->weight();
}

TokenOutput Seq2Seq::output() const {
  if (!output_) return {target_weight(), output_bias_};
  return {output_->weight, output_->bias};
}

std::pair<Seq2Seq::Memory, Seq2Seq::Decoder> Seq2Seq::encode(const Tensor& source,
                                                             const Tensor& lengths,
                                                             const Pass& pass) {
  const Pass here = pass.at_site({NetworkPart::encoder});
  const Tensor embedded = attend::dropout(
      source_embedding_->forward(source.to(devices_.encoder), here), dropout_, here);
  if (!encoder_) return remember(embedded, placed(embedded), lengths, here);
  const Tensor annotations =
      attend::dropout(encoder_->forward(embedded, lengths, here), dropout_, here);
  return remember(embedded, annotations, lengths, here);
}

std::pair<Seq2Seq::Memory, Seq2Seq::Decoder> Seq2Seq::remember(const Tensor& embedded,
                                                               const Tensor& below,
                                                               const Tensor& lengths,
                                                               const Pass& pass) {
  if (!initial_)
    return {Memory{}, Decoder{{at_last(below, lengths).to(devices_.decoder)}, {}, {}, {}}};
  const Tensor annotations = self_ ? self_->forward(below, lengths, {}, pass) : below;
  Memory memory;
  memory.summary =
      (encoder_ && !self_ ? last_states(annotations, lengths) : mean_state(annotations, lengths))
          .to(devices_.decoder);
  if (attention_) {
    const Tensor read = annotations.to(devices_.attention);
    memory.attention = attention_->prepare(read, read, lengths);
  }
  if (has_part(QueryVector::extra)) memory.extra = embedded.select(1, 0).to(devices_.decoder);
  // s_0 = tanh(W_s h_1), h_1 the backward direction at the first token (A.2.2), or the mean of the
  // annotations (Xu et al. 2015, 3.1.2).
  const Tensor first = encoder_ ? backward_state(below).to(devices_.decoder) : memory.summary;
  Decoder decoder{
      initial_->forward(first, pass).tanh().chunk(decoder_->state_size(), 1), {}, {}, {}};
  if (carries_context_) decoder.context = at::zeros_like(memory.summary);
  if (past_) decoder.past = past_->start(decoder.recurrent[0]);
  return {std::move(memory), std::move(decoder)};
}

Tensor Seq2Seq::query(const Decoder& decoder, const Tensor& state, const Tensor& embedded,
                      const Memory& memory) const {
  std::vector<Tensor> parts;
  parts.reserve(query_parts_.size());
  for (const QueryVector part : query_parts_) {
    if (part == QueryVector::previous_state) parts.push_back(decoder_->output(decoder.recurrent));
    if (part == QueryVector::state) parts.push_back(state);
    if (part == QueryVector::token) parts.push_back(embedded);
    if (part == QueryVector::context) parts.push_back(decoder.context);
    if (part == QueryVector::extra) parts.push_back(memory.extra);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

AttentionStep Seq2Seq::advance(const Tensor& embedded, const Memory& memory, Decoder& decoder,
                               const Pass& pass) {
  AttentionStep step;
  std::vector<Tensor> recurrent;
  Tensor state;
  if (state_first_) {
    const Tensor input = carries_context_ ? at::cat({embedded, decoder.context}, 1) : embedded;
    recurrent = decoder_->forward(input, decoder.recurrent, pass);
    state = decoder_->output(recurrent);
  }
  if (attention_) {
    step = attention_->forward(query(decoder, state, embedded, memory).to(devices_.attention),
                               memory.attention, decoder.attention, pass);
    step.context = step.context.to(devices_.decoder);
  } else {
    step.context = memory.summary;
  }
  if (!state_first_)
    recurrent =
        decoder_->forward(step.context.defined() ? at::cat({embedded, step.context}, 1) : embedded,
                          decoder.recurrent, pass);
  decoder.recurrent = std::move(recurrent);
  if (carries_context_) decoder.context = step.context;
  decoder.attention = step.carried;
  return step;
}

Tensor Seq2Seq::vectors(const Readout& readout, const Pass& pass) {
  if (!maxout_) return attend::dropout(readout.state, dropout_, pass);
  std::vector<Tensor> read = {readout.state, readout.embedded, readout.context};
  if (past_) read.push_back(readout.past);
  const Tensor pieces = maxout_->forward(at::cat(read, -1), pass);
  const Tensor largest = std::get<0>(pieces.unflatten(-1, {-1, maxout_pieces}).max(-1));
  return attend::dropout(largest, dropout_, pass);
}

Tensor Seq2Seq::logits(const Readout& readout, const Tensor& weights, const Tensor& source,
                       const Pass& pass) {
  Tensor logits = output().logits(vectors(readout, pass));
  if (!gate_) return logits;
  const Tensor ids = source.to(devices_.decoder), from = weights.to(devices_.decoder);
  const Tensor gate =
      gate_->forward(at::cat({readout.context, readout.state, readout.embedded}, -1), pass);
  return copying_log_probabilities(logits, gate, from,
                                   from.dim() > 2 ? ids.unsqueeze(1).expand_as(from) : ids);
}

Seq2Seq::Teaching Seq2Seq::teach(const Batch& batch, const Memory& memory, Decoder decoder,
                                 const Pass& pass) {
  const Tensor embedded = attend::dropout(
      at::embedding(target_weight(), shift_right(batch.target).to(devices_.decoder)), dropout_,
      pass);
  const bool draws = reward_ && pass.generator,
             keeps_weights = gate_ || (coverage_weight_ > 0 && pass.generator),
             keeps_steps = at::GradMode::is_enabled() && pass.watch != nullptr && !past_;
  Teaching result;
  std::vector<Tensor> states, contexts, all_weights, log_probabilities, entropies;
  for (auto* each : {&states, &contexts, &all_weights, &log_probabilities, &entropies})
    each->reserve(static_cast<size_t>(embedded.size(1)));
  Recurrence recurrence;
  const Pass steps = pass.at_site(reading_source).in(recurrence);
  for (const Tensor& token : embedded.unbind(1)) {
    const AttentionStep step = advance(token, memory, decoder, steps);
    contexts.push_back(step.context);
    states.push_back(decoder_->output(decoder.recurrent));
    if (draws || keeps_weights)
      all_weights.push_back(attention_->weights(step, memory.attention, steps));
    if (keeps_steps)
      result.steps.push_back({{states.back(), token, contexts.back(), {}},
                              keeps_weights ? all_weights.back() : Tensor()});
    if (!draws) continue;
    const HardDraw draw = hard_draw(attention_->scores(step, memory.attention), all_weights.back());
    log_probabilities.push_back(draw.log_probability);
    entropies.push_back(draw.entropy);
  }
  result.readout = {at::stack(states, 1), embedded, {}, {}};
  if (maxout_) result.readout.context = at::stack(contexts, 1);
  if (past_) {
    const Pass here = pass.at_site({NetworkPart::decoder});
    result.readout.past = past_->forward(result.readout.state, here).context;
  }
  const auto joined = [&](const std::vector<Tensor>& steps) {
    return at::stack(steps, 1).to(devices_.decoder);
  };
  if (keeps_weights) result.weights = joined(all_weights);
  if (draws) result.draws = {joined(log_probabilities), joined(entropies)};
  return result;
}

Tensor Seq2Seq::logits(const Batch& batch, const Pass& pass) {
  auto [memory, decoder] = encode(batch.source, batch.source_lengths, pass);
  const Teaching teaching = teach(batch, memory, std::move(decoder), pass);
  return logits(teaching.readout, teaching.weights, batch.source, pass);
}

Tensor Seq2Seq::log_probabilities(const Batch& batch, const Pass& pass) {
  auto [memory, decoder] = encode(batch.source, batch.source_lengths, pass);
  const Teaching teaching = teach(batch, memory, std::move(decoder), pass);
  if (teaching.steps.empty())
    return logits(teaching.readout, teaching.weights, batch.source, pass)
        .log_softmax(-1, at::kDouble);
  std::vector<Tensor> steps;
  for (const auto& [readout, weights] : teaching.steps)
    steps.push_back(
        pass.watched(WatchedVectors::step,
                     logits(readout, weights, batch.source, pass).log_softmax(-1, at::kDouble)));
  return at::stack(steps, 1);
}

Tensor Seq2Seq::logits_by_states(const Batch& batch, std::vector<Tensor>& states) {
  if (!encoder_) fail("model.encoder is none, so it lacks recurrent states to differentiate by");
  const Tensor embedded = source_embedding_->forward(batch.source, {});
  auto [memory, decoder] =
      remember(embedded, encoder_->unrolled(embedded, states), batch.source_lengths, {});
  const Teaching teaching = teach(batch, memory, std::move(decoder), {});
  return logits(teaching.readout, teaching.weights, batch.source, {});
}

Tensor Seq2Seq::objective(const Batch& batch, const Pass& pass, double smoothing) {
  auto [memory, decoder] = encode(batch.source, batch.source_lengths, pass);
  const Teaching teaching = teach(batch, memory, std::move(decoder), pass);
  const Tensor target = batch.target.to(devices_.decoder);
  Tensor loss, logits;
  if (gate_ || teaching.draws.entropy.defined()) {
    logits = this->logits(teaching.readout, teaching.weights, batch.source, pass);
    loss = sequence_loss(logits, target, smoothing);
  } else {
    loss = token_loss(vectors(teaching.readout, pass).flatten(0, 1), output(), target.flatten(),
                      pass, smoothing, Vocabulary::padding, Vocabulary::first_target);
  }
  const Tensor more = pass.generator ? signal(teaching, logits, target) : Tensor();
  return more.defined() ? loss + more - more.detach() : loss;
}

Tensor Seq2Seq::signal(const Teaching& teaching, const Tensor& logits, const Tensor& target) const {
  const Tensor counts = target != Vocabulary::padding;
  Tensor sum;
  if (coverage_weight_ > 0) sum = coverage_weight_ * coverage_loss(teaching.weights, counts);
  const HardDraw& draws = teaching.draws;
  if (!draws.entropy.defined()) return sum;
  const Tensor rewards = logits.log_softmax(-1)
                             .gather(-1, target.unsqueeze(-1))
                             .squeeze(-1)
                             .detach()
                             .masked_fill(counts.logical_not(), 0.0);
  const Tensor usual = rewards_to_go(counts.to(rewards.scalar_type())) * reward_->value();
  const Tensor reinforced = reinforce_loss(draws.log_probability, rewards_to_go(rewards), usual) -
                            entropy_weight_ * (draws.entropy * counts).sum() +
                            reward_->loss(rewards, counts);
  return sum.defined() ? sum + reinforced : reinforced;
}

Tensor Seq2Seq::encodings(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  const Tensor embedded = source_embedding_->forward(source.to(devices_.encoder), pass);
  const Tensor below = encoder_ ? encoder_->forward(embedded, lengths, pass) : placed(embedded);
  return self_ ? self_->forward(below, lengths, {}, pass) : below;
}

struct Seq2Seq::State : DecodingState {
  State(Seq2Seq& its_network, Memory its_memory, Decoder first)
      : network(its_network), memory(std::move(its_memory)), decoder(std::move(first)) {}

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& pass) override;

  void reorder(const Tensor& rows, bool same_sources) override {
    for (Tensor* each : hypothesis_tensors()) *each = selected_rows(*each, rows);
    if (same_sources) return;
    for (Tensor* each : source_tensors()) *each = selected_rows(*each, rows);
  }

  std::unique_ptr<DecodingState> joined(const std::vector<DecodingState*>& others) const override;

  std::vector<Tensor*> hypothesis_tensors() {
    std::vector<Tensor*> all = {&decoder.context, &decoder.past.keys, &decoder.past.values};
    for (Tensor& each : decoder.recurrent) all.push_back(&each);
    for (Tensor& each : decoder.attention) all.push_back(&each);
    return all;
  }

  std::vector<Tensor*> source_tensors() {
    AttentionMemory& read = memory.attention;
    return {&read.keys, &read.values, &read.lengths, &memory.summary, &memory.extra, &source};
  }

  Seq2Seq& network;
  Memory memory;
  Decoder decoder;
  Tensor source;  // [N, S]; undefined unless tokens are copied
};

std::unique_ptr<DecodingState> Seq2Seq::start(const Tensor& source, const Tensor& lengths,
                                              const Pass& pass) {
  auto [memory, decoder] = encode(source, lengths, pass);
  if (packed_ != nullptr && may_step_packed(pass))
    return packed_->start({memory.attention, decoder.recurrent, memory.extra});
  if (attention_ && !memory.attention.lengths.defined())
    memory.attention.lengths = lengths.to(memory.attention.keys.device());
  auto state = std::make_unique<State>(*this, std::move(memory), std::move(decoder));
  if (gate_) state->source = source;
  return state;
}

StepResult Seq2Seq::State::step(const Tensor& tokens, bool with_weights, const Pass& pass) {
  const Pass here = pass.at_site(reading_source);
  const Tensor embedded =
      at::embedding(network.target_weight(), tokens.to(network.devices_.decoder));
  const AttentionStep read = network.advance(embedded, memory, decoder, here);
  Readout readout{network.decoder_->output(decoder.recurrent), embedded, read.context, {}};
  if (network.past_) {
    auto [seen, past] =
        network.past_->step(readout.state, decoder.past, pass.at_site({NetworkPart::decoder}));
    readout.past = seen.context;
    decoder.past = std::move(past);
  }
  StepResult result;
  Tensor weights;
  if (network.attention_ && (with_weights || network.gate_))
    weights = network.attention_->weights(read, memory.attention, here);
  if (with_weights) result.weights = weights;
  result.log_probabilities = network.logits(readout, weights, source, pass).log_softmax(-1);
  return result;
}

std::unique_ptr<DecodingState> Seq2Seq::State::joined(
    const std::vector<DecodingState*>& others) const {
  // The carried state of attention serves only to compute weights, and is empty before the first
  // step. It is cleared, so that states at any step can be joined.
  const auto copy = [](const State& state) {
    auto result = std::make_unique<State>(state);
    result->decoder.attention.clear();
    return result;
  };
  const auto tensors = [](State& state) {
    std::vector<Tensor*> all = state.hypothesis_tensors();
    for (Tensor* each : state.source_tensors()) all.push_back(each);
    return all;
  };
  auto result = copy(*this);
  for (DecodingState* each : others) {
    const auto other = copy(dynamic_cast<const State&>(*each));
    const std::vector<Tensor*> own = tensors(*result), more = tensors(*other);
    for (size_t i = 0; i < own.size(); ++i) {
      if (!own[i]->defined()) continue;
      if (own[i]->sizes().slice(1) != more[i]->sizes().slice(1)) return nullptr;
      *own[i] = at::cat({*own[i], *more[i]});
    }
  }
  return result;
}

bool Seq2Seq::pack(WeightType weights) {
  packed_ = nullptr;
  // Packed steps keep only one state; the state before the step is overwritten.
  const bool reads_both = state_first_ && has_part(QueryVector::previous_state);
  if (!attention_ || past_ || gate_ || reads_both) return false;
  RecurrentParts parts{.embedding = target_weight(),
                       .cell = *decoder_,
                       .cell_reads = {StepVector::token},
                       .attention = *attention_,
                       .query = {},
                       .extra_depth = extra_depth_,
                       .state_first = state_first_,
                       .readout_weight = maxout_->weight,
                       .readout_bias = maxout_->bias,
                       .readout = {StepVector::state, StepVector::token, StepVector::context},
                       .pieces = maxout_pieces,
                       .output = output()};
  if (!state_first_ || carries_context_) parts.cell_reads.push_back(StepVector::context);
  for (const QueryVector part : query_parts_)
    parts.query.push_back(query_part_table()[static_cast<size_t>(part)].vector);
  packed_ = PackedRecurrent::pack(parts, weights);
  return packed_ != nullptr;
}

Tensor sequence_loss(const Tensor& logits, const Tensor& target, double smoothing) {
  return smoothed_cross_entropy(logits.reshape({-1, logits.size(-1)}), target.reshape({-1}),
                                smoothing, Vocabulary::padding, Vocabulary::first_target);
}

}  // namespace attend
