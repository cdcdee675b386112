#include "attend/models/language_model.h"

#include <vector>

#include "attend/decode/packed_decoder.h"
#include "attend/decode/stack_steps.h"
#include "attend/nn/multi_head_state.h"
#include "attend/nn/shared_sequence.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

constexpr Site in_layers{NetworkPart::layers, 0, false};

Tensor after_start(const Tensor& tokens, int64_t starts = 1) {
  return at::cat({at::full({tokens.size(0), starts}, Vocabulary::bos, tokens.options()), tokens},
                 1);
}

// Start token, source and target without its last token, without padding in between; [B, longest].
// `starts` [B]: number of start tokens, 0 or 1.
Tensor joined(const Batch& batch, const Tensor& starts) {
  if (batch.source.size(1) == 0) return shift_right(batch.target);
  const Tensor apart = at::cat({after_start(batch.source), batch.target}, 1);
  const Tensor ends = batch.source_lengths + batch.target_lengths + starts - 1;
  const Tensor left_out = (1 - starts).to(apart.device()).unsqueeze(1);
  const Tensor place =
      at::arange(ends.max().item<int64_t>(), apart.options()).unsqueeze(0) + left_out;
  const Tensor length = batch.source_lengths.to(apart.device()).unsqueeze(1);
  const Tensor padding = (batch.source.size(1) - length) * (place > length);
  return apart.gather(1, (place + padding).clamp_max(apart.size(1) - 1));
}

// The target token that each of the first positions of joined() predicts, or padding. The last
// source token, or the start token, predicts the first target token.
Tensor predicted(const Batch& batch, const Tensor& starts, int64_t places) {
  if (batch.source.size(1) == 0) return batch.target;
  const Tensor& target = batch.target;
  const Tensor index = at::arange(places, target.options()).unsqueeze(0) -
                       (batch.source_lengths + starts - 1).unsqueeze(1);
  return target.gather(1, index.clamp(0, target.size(1) - 1))
      .masked_fill((index < 0) | (index >= target.size(1)), Vocabulary::padding);
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelConfig& config, int64_t tokens)
    : context_(config.context),
      negatives_(config.negatives),
      start_(config.start),
      dropout_(config.dropout) {
  config.check();
  embedding_ = register_module("embedding", std::make_shared<PositionedEmbedding>(
                                                tokens, config.depth,
                                                EmbeddingForm{.positions = config.positions,
                                                              .maximum = config.context,
                                                              .scaled = config.scale_embedding,
                                                              .equal = config.equal_tokens()}));
  if (config.embedding_deviation > 0) embedding_->draw(config.embedding_deviation);
  stack_ = register_module(
      "stack", std::make_shared<TransformerStack>(config.stack(config.layers, /*causal=*/true)));
  if (!config.tied) output_ = register_module("output", torch::nn::Linear(config.depth, tokens));
  if (config.tied && config.output_bias)
    output_bias_ = register_parameter("output_bias", at::zeros(tokens));
  trains_bias_ = !config.fixed_output_bias;
}

TokenOutput LanguageModel::output() const {
  const Tensor weight = output_ ? output_->weight : embedding_->weight();
  const Tensor bias = output_ ? output_->bias : output_bias_;
  return {weight, trains_bias_ || !bias.defined() ? bias : bias.detach()};
}

Tensor LanguageModel::vectors_of(const Tensor& text, const Pass& pass) {
  const Pass here = pass.at_site(in_layers);
  const Tensor embedded = embedding_->forward(to_device(text), 0, dropout_, here);
  // Positions do not attend to later ones, so padding at the end needs no lengths.
  return stack_->forward(embedded, {}, {}, here);
}

Tensor LanguageModel::starts(const Tensor& source_lengths) const {
  return start_ ? at::ones_like(source_lengths) : (source_lengths == 0).to(at::kLong);
}

Tensor LanguageModel::logits(const Batch& batch, const Pass& pass) {
  const Tensor before = starts(batch.source_lengths);
  const Tensor vectors = vectors_of(joined(batch, before), pass);
  if (batch.source.size(1) == 0) return output().logits(vectors);
  const Tensor last = (batch.source_lengths + before - 1).to(vectors.device()).unsqueeze(1);
  const Tensor place = (last + at::arange(batch.target.size(1), last.options()))
                           .clamp_max(vectors.size(1) - 1)
                           .unsqueeze(2);
  return pass.watched(WatchedVectors::logits,
                      output().logits(vectors.gather(1, place.expand({-1, -1, vectors.size(2)}))));
}

Tensor LanguageModel::log_probabilities(const Batch& batch, const Pass& pass) {
  return logits(batch, pass).log_softmax(-1, at::kDouble);
}

// The start token precedes the source, and each token is predicted from the vector before it.
TopVectors LanguageModel::top_vectors(int64_t source_length, int64_t target_length) const {
  const int64_t before = starts(at::tensor({source_length}, at::kLong)).item<int64_t>();
  const int64_t first = source_length + before - 1;
  return {before, at::eye(first + target_length).slice(0, first)};
}

Tensor LanguageModel::objective(const Batch& batch, const Pass& pass, double smoothing) {
  const Tensor before = starts(batch.source_lengths);
  const Tensor text = joined(batch, before);
  const SharedSequence shared(pass, text.size(1));
  const Tensor vectors = vectors_of(shared.own(text), pass.over(shared));
  const Tensor target = shared.own(predicted(batch, before, text.size(1)));
  const Tensor rows = vectors.flatten(0, 1), tokens = to_device(target).flatten();
  if (negatives_ > 0 && pass.generator)
    return sampled_token_loss(rows, output(), tokens, pass, negatives_, smoothing,
                              Vocabulary::padding, Vocabulary::first_target);
  return token_loss(rows, output(), tokens, pass, smoothing, Vocabulary::padding,
                    Vocabulary::first_target);
}

Tensor LanguageModel::encodings(const Tensor& source, const Tensor&, const Pass& pass) {
  const int64_t before = start_ || source.size(1) == 0 ? 1 : 0;
  return vectors_of(after_start(source, before), pass).slice(1, before);
}

struct LanguageModel::State : DecodingState {
  State(LanguageModel& its_network, const Tensor& source, const Pass& pass)
      : network(its_network),
        starts(network.start_ || source.size(1) == 0 ? 1 : 0),
        text(network.to_device(after_start(source, starts))),
        places(at::arange(starts, text.size(1), text.options()).expand({text.size(0), -1})),
        layers(network.start_layers(text.size(0), pass)) {
    read_on(pass.at_site(in_layers));
  }

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& pass) override {
    const Pass here = pass.at_site(in_layers);
    take(tokens, here);  // may restart the layers
    const Tensor vectors =
        network.embedding_->forward(text.slice(1, -1), text.size(1) - 1, 0, here).squeeze(1);
    StepResult result = layers->step(vectors, with_weights, here);
    if (result.weights.defined()) result.weights = over_source(result.weights);
    return result;
  }

  NextTokens next(const Tensor& tokens, const NextQuery& query) override {
    take(tokens, {});
    const std::vector<int64_t> positions(static_cast<size_t>(text.size(0)), text.size(1) - 1);
    const Tensor vectors = network.embedding_->next(text.select(1, -1), positions);
    NextTokens next = layers->next(vectors, query);
    if (next.weights.defined()) next.weights = over_source(next.weights);
    return next;
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    text = selected_rows(text, rows);
    layers->reorder(rows, same_sources);
    if (!same_sources) places = selected_rows(places, rows);
  }

  // Lets the layers read all tokens except the last.
  void read_on(const Pass& pass) {
    const int64_t kept = network.context_ / 2;
    if (text.size(1) > network.context_) {
      const int64_t dropped = text.size(1) - kept - starts;
      places = places - dropped;
      text = after_start(text.slice(1, -kept), starts);
      layers = network.start_layers(text.size(0), pass);
    }
    const int64_t read = layers->positions(), last = text.size(1) - 1;
    if (read < last)
      layers->read(network.embedding_->forward(text.slice(1, read, last), read, 0, pass), pass);
  }

  // Appends the next tokens to the text, if the layers have read all of it. At the first step the
  // text already ends with the last source token.
  void take(const Tensor& tokens, const Pass& pass) {
    if (layers->positions() != text.size(1)) return;
    text = at::cat({text, network.to_device(tokens).unsqueeze(1)}, 1);
    read_on(pass);
  }

  // Selects the weights over the source from weights [N, tokens].
  Tensor over_source(const Tensor& weights) const {
    return weights.gather(1, places.clamp_min(0)) * (places >= starts);
  }

  LanguageModel& network;
  int64_t starts;  // number of start tokens before the text
  Tensor text;    // [N, n], the tokens from the start token on. Between steps, the layers have read
                  // all tokens except the last, which the next step reads
  Tensor places;  // [N, S], index in `text` of each source token; below `starts` if dropped
  std::unique_ptr<StackSteps> layers;
};

std::unique_ptr<StackSteps> LanguageModel::start_layers(int64_t rows, const Pass& pass) {
  if (packed_ != nullptr && may_step_packed(pass)) return packed_->start({}, rows);
  return stack_steps(*stack_, output(), {}, pass);
}

std::unique_ptr<DecodingState> LanguageModel::start(const Tensor& source, const Tensor&,
                                                    const Pass& pass) {
  return std::make_unique<State>(*this, source, pass);
}

bool LanguageModel::pack(WeightType weights) {
  packed_ = PackedDecoder::pack(*stack_, output(), weights);
  return packed_ != nullptr;
}

}  // namespace attend
