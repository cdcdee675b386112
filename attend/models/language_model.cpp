#include "attend/models/language_model.h"

#include "attend/data/vocabulary.h"
#include "attend/nn/packed_decoder.h"
#include "attend/nn/shared_sequence.h"
#include "attend/nn/site.h"

namespace attend {
namespace {

using at::Tensor;

Tensor behind_start(const Tensor& tokens) {
  return at::cat({at::full({tokens.size(0), 1}, Vocabulary::bos, tokens.options()), tokens}, 1);
}

// The start, the source and all of the target but its last token, without the padding between
// them; [B, the longest].
Tensor joined(const Batch& batch) {
  if (batch.source.size(1) == 0) return shift_right(batch.target);
  const Tensor apart = at::cat({behind_start(batch.source), batch.target}, 1);
  const int64_t longest = (batch.source_lengths + batch.target_lengths).max().item<int64_t>();
  const Tensor place = at::arange(longest, apart.options()).unsqueeze(0);
  const Tensor length = batch.source_lengths.to(apart.device()).unsqueeze(1);
  const Tensor padding = (batch.source.size(1) - length) * (place > length);
  return apart.gather(1, (place + padding).clamp_max(apart.size(1) - 1));
}

// The token of the target that each of the first places of joined() predicts, padding where it
// predicts none: the last token of the source, or the start, predicts the first.
Tensor predicted(const Batch& batch, int64_t places) {
  if (batch.source.size(1) == 0) return batch.target;
  const Tensor& target = batch.target;
  const Tensor index =
      at::arange(places, target.options()).unsqueeze(0) - batch.source_lengths.unsqueeze(1);
  return target.gather(1, index.clamp(0, target.size(1) - 1))
      .masked_fill((index < 0) | (index >= target.size(1)), Vocabulary::padding);
}

// How many tokens of recurrent[0] the caches hold.
int64_t tokens_read(const StepState& state) {
  return state.held != nullptr ? PackedStack::steps(*state.held) : state.self_cache[0].queries();
}

// The part of weights [N, tokens] that is over the source.
Tensor over_source(const Tensor& weights, const StepState& state) {
  const Tensor& places = state.constant[0];
  return weights.gather(1, places.clamp_min(0)) * (places > 0);
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelConfig& config, int64_t tokens)
    : context_(config.context), dropout_(config.dropout) {
  config.check();
  embedding_ =
      register_module("embedding", std::make_shared<PositionedEmbedding>(
                                       tokens, config.depth, config.positions, config.context));
  stack_ = register_module(
      "stack", std::make_shared<TransformerStack>(config.stack(config.layers, /*causal=*/true)));
  if (!config.tied) output_ = register_module("output", torch::nn::Linear(config.depth, tokens));
}

TokenOutput LanguageModel::output() const {
  if (!output_) return {embedding_->weight()};
  return {output_->weight, output_->bias};
}

Tensor LanguageModel::vectors_of(const Tensor& text, const DropoutGenerator& generator) {
  const SiteScope here({.part = NetworkPart::layers});
  const Tensor embedded = embedding_->forward(to_device(text), 0, dropout_, generator);
  // No position sees later ones, so that padding, which is last, needs no lengths.
  return stack_->forward(embedded, {}, {}, generator);
}

Tensor LanguageModel::logits(const Batch& batch, const DropoutGenerator& generator) {
  const Tensor vectors = vectors_of(joined(batch), generator);
  if (batch.source.size(1) == 0) return output().logits(vectors);
  const Tensor length = batch.source_lengths.to(vectors.device()).unsqueeze(1);
  const Tensor place = (length + at::arange(batch.target.size(1), length.options()))
                           .clamp_max(vectors.size(1) - 1)
                           .unsqueeze(2);
  return output().logits(vectors.gather(1, place.expand({-1, -1, vectors.size(2)})));
}

Tensor LanguageModel::log_probabilities(const Batch& batch) {
  return logits(batch, {}).log_softmax(-1, at::kDouble);
}

// The start stands before the source, and each token is read off the vector before it.
TopVectors LanguageModel::top_vectors(int64_t source_length, int64_t target_length) const {
  return {1, at::eye(source_length + target_length).slice(0, source_length)};
}

Tensor LanguageModel::objective(const Batch& batch, const DropoutGenerator& generator,
                                double smoothing) {
  const Tensor text = joined(batch);
  const SharedSequence shared(text.size(1));
  const Tensor vectors = vectors_of(shared.own(text), generator);
  const Tensor target = shared.own(predicted(batch, text.size(1)));
  return token_loss(vectors.flatten(0, 1), output(), to_device(target).flatten(), smoothing,
                    Vocabulary::padding, Vocabulary::first_target);
}

Tensor LanguageModel::encodings(const Tensor& source, const Tensor&) {
  const Tensor text = to_device(behind_start(source));
  return stack_->forward(embedding_->forward(text, 0, dropout_, {}), {}, {}, {}).slice(1, 1);
}

// recurrent[0] [N, n]: the tokens from the start on, of which the caches hold all but, between
// steps, a last one that the next step reads. constant[0] [N, S]: where in there each token of the
// source is; below 1 where it is not any more.
StepState LanguageModel::start(const Tensor& source, const Tensor&) {
  StepState state;
  state.recurrent = {to_device(behind_start(source))};
  const Tensor& text = state.recurrent[0];
  state.constant = {at::arange(1, text.size(1), text.options()).expand({text.size(0), -1})};
  if (packed_ != nullptr && PackedDecoder::may_step())
    state.held = packed_->stack().start({}, text.size(0));
  else
    stack_->start({}, state);
  read_on(state);
  return state;
}

// Fills the caches up to the last token.
void LanguageModel::read_on(StepState& state) {
  Tensor& text = state.recurrent[0];
  const int64_t kept = context_ / 2;
  if (text.size(1) > context_) {
    const int64_t dropped = text.size(1) - kept - 1;
    state.constant[0] = state.constant[0] - dropped;
    text = behind_start(text.slice(1, -kept));
    state.self_cache.clear();
    if (state.held != nullptr)
      state.held = packed_->stack().start({}, text.size(0));
    else
      stack_->start({}, state);
  }
  const int64_t read = tokens_read(state), last = text.size(1) - 1;
  if (read >= last) return;
  const Tensor embedded = embedding_->forward(text.slice(1, read, last), read, 0, {});
  if (state.held != nullptr)
    packed_->stack().step(embedded, *state.held, /*with_weights=*/false);
  else
    stack_->step(embedded, state);
}

// What the next step reads: of the first one the end of the source, not the start that it is given.
Tensor LanguageModel::next_vectors(const Tensor& tokens, StepState& state) {
  Tensor& text = state.recurrent[0];
  if (tokens_read(state) == text.size(1)) {
    text = at::cat({text, to_device(tokens).unsqueeze(1)}, 1);
    read_on(state);
  }
  return embedding_->forward(text.slice(1, -1), text.size(1) - 1, 0, {});
}

StepResult LanguageModel::step(const Tensor& tokens, StepState& state, bool with_weights) {
  const Tensor embedded = next_vectors(tokens, state);
  StepResult result;
  if (state.held != nullptr) {
    result = packed_->step(embedded.squeeze(1), *state.held, with_weights);
    if (with_weights) result.weights = over_source(result.weights, state);
    return result;
  }
  std::vector<LayerTrace> trace;
  const Tensor vectors = stack_->step(embedded, state, with_weights ? &trace : nullptr);
  result.log_probabilities = output().logits(vectors.squeeze(1)).log_softmax(-1);
  if (with_weights)
    result.weights = over_source(multi_head_weights(trace.back().self).mean(1).squeeze(1), state);
  return result;
}

NextTokens LanguageModel::next(const Tensor& tokens, StepState& state, const NextQuery& query) {
  if (state.held == nullptr) return StepModel::next(tokens, state, query);
  const Tensor embedded = next_vectors(tokens, state).squeeze(1);
  NextTokens next = packed_->next(embedded, *state.held, query);
  if (query.with_weights) next.weights = over_source(next.weights, state);
  return next;
}

bool LanguageModel::pack(WeightType weights) {
  packed_ = PackedDecoder::pack(*stack_, output(), weights);
  return packed_ != nullptr;
}

}  // namespace attend
