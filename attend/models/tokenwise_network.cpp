#include "attend/models/tokenwise_network.h"

#include "attend/base/error.h"
#include "attend/nn/attention_trace.h"
#include "attend/nn/multi_head_state.h"
#include "attend/ops/normalisers.h"

namespace attend {
namespace {

using at::Tensor;

}  // namespace

EncoderNetwork::EncoderNetwork(const SourceEncoderConfig& config, const SourceShape& source,
                               Parts parts)
    : before_source_(parts.class_token ? 1 : 0), activation_(config.activation) {
  config.check();
  if (source.is_frames())
    fail(
        "a model of this type reads only texts, not images, sounds, sets or molecules; take "
        "seq2seq, transformer, vit or set");
  encoder_ =
      register_module("encoder", std::make_shared<SourceEncoder>(source, config, before_source_));
  if (!parts.output_layer) return;
  const int64_t depth = parts.output_depth > 0 ? parts.output_depth : config.depth;
  layer_ = register_module("layer", Linear(config.depth, depth));
  if (!parts.output_norm) return;
  layer_norm_ = register_module(
      "layer_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({depth}).eps(config.epsilon)));
}

Tensor EncoderNetwork::vectors(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  return encoder_->forward(to_device(source), lengths, pass.at_site({NetworkPart::encoder}))
      .vectors.slice(1, before_source_);
}

Tensor EncoderNetwork::read_off(const Tensor& vectors, const Pass& pass) {
  if (!layer_) return vectors;
  const Tensor made = activated(layer_->forward(vectors, pass), activation_, pass);
  if (!layer_norm_) return made;
  return pass.normalised(
      {made, layer_norm_->weight, layer_norm_->bias, layer_norm_->options.eps()});
}

Tensor EncoderNetwork::encodings(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  return vectors(source, lengths, pass);
}

TokenwiseNetwork::TokenwiseNetwork(const SourceEncoderConfig& config, const SourceShape& source,
                                   Parts parts)
    : EncoderNetwork(config, source, parts),
      attends_(config.layers > 0 && config.attends(config.layers - 1) &&
               !Normaliser(config.self.choices().normaliser).row().running_sums) {}

TopVectors TokenwiseNetwork::top_vectors(int64_t source_length, int64_t /*target_length*/) const {
  const int64_t before = before_source();
  return {before, at::eye(before + source_length).slice(0, before)};
}

struct TokenwiseNetwork::State : DecodingState {
  State(TokenwiseNetwork& its_network, const Tensor& its_source, const Tensor& its_lengths,
        const Pass& pass)
      : network(its_network),
        source(network.to_device(its_source)),
        lengths(network.to_device(its_lengths)),
        vectors(network.vectors(network.as_asked(its_source), its_lengths, pass)) {}

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& pass) override;

  void reorder(const Tensor& rows, bool same_sources) override {
    if (same_sources) return;
    for (Tensor* each : {&source, &lengths, &vectors, &weights}) *each = selected_rows(*each, rows);
  }

  TokenwiseNetwork& network;
  int64_t place = 0;
  Tensor source, lengths, vectors;
  Tensor weights;  // [N, S, S]; undefined until a step requests weights
};

StepResult TokenwiseNetwork::State::step(const Tensor& /*tokens*/, bool with_weights,
                                         const Pass& pass) {
  StepResult result;
  result.log_probabilities = network.answered(source.select(1, place), vectors.select(1, place));
  if (with_weights && network.attends_) {
    if (!weights.defined()) {
      AttentionTrace trace;
      network.vectors(network.as_asked(source), lengths, pass.watched_by(trace));
      const int64_t first = network.before_source();
      weights = trace.attentions().back().weights().mean(1).slice(1, first).slice(2, first);
    }
    result.weights = weights.select(1, place);
  }
  ++place;
  return result;
}

std::unique_ptr<DecodingState> TokenwiseNetwork::start(const Tensor& source, const Tensor& lengths,
                                                       const Pass& pass) {
  return std::make_unique<State>(*this, source, lengths, pass);
}

}  // namespace attend
