#include "attend/models/seq2seq.h"

#include <cmath>

#include "attend/base/error.h"
#include "attend/data/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t maxout_pieces = 2;  // Bahdanau et al. 2015, A.2.2

std::vector<std::string> score_choices() {
  std::vector<std::string> names = {"none"};
  for (const ScoreRow& row : score_table()) names.emplace_back(row.name);
  return names;
}

torch::nn::Embedding embedding(int64_t symbols, int64_t depth) {
  auto layer = torch::nn::Embedding(symbols, depth);
  torch::nn::init::normal_(layer->weight, 0, 1 / std::sqrt(static_cast<double>(depth)));
  return layer;
}

// The target moved one to the right behind the start symbol: what each step sees.
Tensor symbols_before(const Tensor& target) {
  const Tensor start = at::full({target.size(0), 1}, Vocabulary::start, target.options());
  return at::cat({start, target.slice(1, 0, -1)}, 1);
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

Settings Seq2SeqConfig::settings() {
  return {
      {"model.cell", &cell, "recurrent cell", {}, {}, {"gru", "lstm"}},
      {"model.score", &score, "attention score; none: one fixed context", {}, {}, score_choices()},
      {"model.embedding", &embedding, "depth of the symbol embeddings", 1, 65536},
      {"model.hidden", &hidden, "depth of decoder state and annotations; even", 2, 65536},
      {"model.attention_depth", &attention_depth, "hidden units of the additive score", 1, 65536},
      {"model.encoder_layers", &encoder_layers, "bidirectional layers of the encoder", 1, 64},
      {"model.dropout", &dropout, "share of activations dropped in training", 0, 0.95},
      {"model.maximum_source_length", &maximum_source_length,
       "symbols of a source that are read; the rest is cut", 1, 1 << 20},
  };
}

Seq2Seq::Seq2Seq(const Seq2SeqConfig& config, int64_t source_symbols, int64_t target_symbols)
    : dropout_(config.dropout) {
  if (config.hidden % 2 != 0) fail("model.hidden must be even, got {}", config.hidden);
  const int64_t hidden = config.hidden;
  const Cell cell = parse_cell(config.cell);
  source_embedding_ =
      register_module("source_embedding", embedding(source_symbols, config.embedding));
  target_embedding_ =
      register_module("target_embedding", embedding(target_symbols, config.embedding));
  encoder_ = register_module(
      "encoder", std::make_shared<BidirectionalEncoder>(cell, config.embedding, hidden,
                                                        config.encoder_layers, config.dropout));
  decoder_ = register_module(
      "decoder", std::make_shared<RecurrentCell>(cell, config.embedding + hidden, hidden));
  initial_ =
      register_module("initial", torch::nn::Linear(hidden / 2, hidden * decoder_->state_size()));
  if (config.score != "none")
    attention_ = register_module(
        "attention", std::make_shared<AttentionNetwork>(
                         config.score, AttentionSizes{hidden, hidden, config.attention_depth,
                                                      config.maximum_source_length}));
  maxout_ = register_module(
      "maxout", torch::nn::Linear(2 * hidden + config.embedding, maxout_pieces * hidden));
  output_ = register_module("output", torch::nn::Linear(hidden, target_symbols));
}

std::pair<Seq2Seq::Memory, std::vector<Tensor>> Seq2Seq::encode(const Tensor& source,
                                                                const Tensor& lengths,
                                                                const Noise& noise) {
  const Tensor embedded = attend::dropout(source_embedding_->forward(source), dropout_, noise);
  const Tensor annotations =
      attend::dropout(encoder_->forward(embedded, lengths, noise), dropout_, noise);
  Memory memory;
  memory.summary = last_states(annotations, lengths);
  if (attention_) memory.attention = attention_->prepare(annotations, annotations, lengths);
  // s_0 = tanh(W_s h_1), h_1 the backward direction at the first symbol (A.2.2).
  const Tensor backward = memory.summary.slice(1, memory.summary.size(1) / 2);
  return {memory, initial_->forward(backward).tanh().chunk(decoder_->state_size(), 1)};
}

AttentionResult Seq2Seq::context(const Tensor& query, const Memory& memory) {
  if (!attention_) return {memory.summary, {}};
  return attention_->forward(query, memory.attention);
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

Tensor Seq2Seq::logits(const Batch& batch, const Noise& noise) {
  auto [memory, state] = encode(batch.source, batch.source_lengths, noise);
  const Tensor embedded =
      attend::dropout(target_embedding_->forward(symbols_before(batch.target)), dropout_, noise);
  std::vector<Tensor> states, contexts;
  for (int64_t t = 0; t < embedded.size(1); ++t) {
    contexts.push_back(context(state[0], memory).context);
    state = decoder_->forward(at::cat({embedded.select(1, t), contexts.back()}, 1), state);
    states.push_back(state[0]);
  }
  return readout(at::stack(states, 1), embedded, at::stack(contexts, 1), noise);
}

Tensor Seq2Seq::objective(const Batch& batch, const Noise& noise, double smoothing) {
  return sequence_loss(logits(batch, noise), batch.target, smoothing);
}

StepState Seq2Seq::start(const Tensor& source, const Tensor& lengths) {
  auto [memory, state] = encode(source, lengths, {});
  StepState result{std::move(state), {memory.summary}};
  if (!attention_) return result;
  const AttentionMemory& read = memory.attention;
  const Tensor mask = read.mask.defined() ? read.mask
                                          : at::ones({source.size(0), 1, 1, source.size(1)},
                                                     source.options().dtype(at::kBool));
  result.memory.insert(result.memory.end(), {read.keys, read.values, mask});
  return result;
}

StepResult Seq2Seq::step(const Tensor& tokens, const StepState& state, bool with_weights) {
  Memory memory;
  memory.summary = state.memory[0];
  if (attention_) memory.attention = {state.memory[1], state.memory[2], state.memory[3]};
  const Tensor embedded = target_embedding_->forward(tokens);
  const Tensor& query = state.carried[0];
  const auto [read, lse] = context(query, memory);
  StepResult result;
  if (with_weights && attention_)
    result.weights = attention_->weights(query, lse, memory.attention);
  result.carried = decoder_->forward(at::cat({embedded, read}, 1), state.carried);
  result.log_probabilities = readout(result.carried[0], embedded, read, {}).log_softmax(-1);
  return result;
}

Tensor sequence_loss(const Tensor& logits, const Tensor& target, double smoothing) {
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), target.reshape({-1}), {},
                                at::Reduction::Sum, Vocabulary::padding, smoothing);
}

}  // namespace attend
