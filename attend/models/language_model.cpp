#include "attend/models/language_model.h"

#include "attend/data/vocabulary.h"

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

Tensor LanguageModel::predicting(const Batch& batch, const DropoutGenerator& generator) {
  const Tensor embedded = embedding_->forward(to_device(joined(batch)), 0, dropout_, generator);
  // No position sees later ones, so that padding, which is last, needs no lengths.
  Tensor vectors = stack_->forward(embedded, {}, {}, generator);
  if (batch.source.size(1) == 0) return vectors;
  // The last token of the source, or the start, predicts the first of the target.
  const Tensor length = batch.source_lengths.to(vectors.device()).unsqueeze(1);
  const Tensor place = (length + at::arange(batch.target.size(1), length.options()))
                           .clamp_max(vectors.size(1) - 1)
                           .unsqueeze(2);
  return vectors.gather(1, place.expand({-1, -1, vectors.size(2)}));
}

Tensor LanguageModel::logits(const Batch& batch, const DropoutGenerator& generator) {
  return output().logits(predicting(batch, generator));
}

Tensor LanguageModel::objective(const Batch& batch, const DropoutGenerator& generator,
                                double smoothing) {
  return token_loss(predicting(batch, generator).flatten(0, 1), output(),
                    to_device(batch.target).flatten(), smoothing, Vocabulary::padding);
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
  }
  if (state.self_cache.empty()) stack_->start({}, state);
  const int64_t read = state.self_cache[0].queries(), last = text.size(1) - 1;
  if (read < last) stack_->step(embedding_->forward(text.slice(1, read, last), read, 0, {}), state);
}

StepResult LanguageModel::step(const Tensor& tokens, StepState& state, bool with_weights) {
  Tensor& text = state.recurrent[0];
  // The first step reads the end of the source, not the start that it is given.
  if (state.self_cache[0].queries() == text.size(1)) {
    text = at::cat({text, to_device(tokens).unsqueeze(1)}, 1);
    read_on(state);
  }
  const Tensor embedded = embedding_->forward(text.slice(1, -1), text.size(1) - 1, 0, {});
  std::vector<LayerTrace> trace;
  const Tensor vectors = stack_->step(embedded, state, with_weights ? &trace : nullptr);
  StepResult result;
  result.log_probabilities = output().logits(vectors.squeeze(1)).log_softmax(-1);
  if (!with_weights) return result;
  const Tensor weights = multi_head_weights(trace.back().self).mean(1).squeeze(1);
  result.weights = weights.gather(1, state.constant[0].clamp_min(0)) * (state.constant[0] > 0);
  return result;
}

}  // namespace attend
