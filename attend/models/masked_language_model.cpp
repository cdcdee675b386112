#include "attend/models/masked_language_model.h"

#include <ATen/CPUGeneratorImpl.h>

#include <limits>

#include "attend/base/error.h"
#include "attend/nn/multi_head_state.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t first_token = Vocabulary::unknown + 1;
constexpr double impossible = -std::numeric_limits<double>::infinity();

// What the network reads of a source in which it is to fill in what is unknown.
Tensor hidden_unknown(const Tensor& source) {
  return source.masked_fill(source == Vocabulary::unknown, mask_token);
}

}  // namespace

MaskedLanguageModelConfig::MaskedLanguageModelConfig() { layers = 4; }

Settings MaskedLanguageModelConfig::settings() {
  Settings all = {
      {"model.masked_share", &masked_share, "of the tokens, which are asked for", 1e-3, 1}};
  append(all, SourceEncoderConfig::settings());
  return all;
}

void MaskedLanguageModelConfig::check() const {
  SourceEncoderConfig::check();
  if (layers == 0) fail("model.layers is 0; what is hidden is guessed by layers: set 1 or more");
}

MaskedTokens mask_tokens(const Tensor& source, const Tensor& lengths, double share, int64_t tokens,
                         const at::Generator& generator) {
  const Tensor outside = at::arange(source.size(1), lengths.options()) >= lengths.unsqueeze(1);
  const Tensor draw = at::rand(source.sizes(), generator).masked_fill(outside.cpu(), 2);
  constexpr int64_t axis = 1;
  const Tensor count = (lengths.cpu() * share).round().clamp_min(1).unsqueeze(1);
  const Tensor asked =
      (draw.argsort(axis).argsort(axis) < count).logical_and(outside.cpu().logical_not());
  const Tensor way = at::rand(source.sizes(), generator);
  const Tensor other = at::randint(first_token, std::max(tokens, first_token + 1), source.sizes(),
                                   generator, at::kLong);
  const Tensor hidden = asked.logical_and(way < 0.8);
  const Tensor changed = asked.logical_and(way >= 0.8).logical_and(way < 0.9);
  const auto there = [&](const Tensor& x) { return x.to(source.device()); };
  return {at::where(there(changed), there(other), source).masked_fill(there(hidden), mask_token),
          source.masked_fill(there(asked.logical_not()), Vocabulary::padding)};
}

MaskedLanguageModel::MaskedLanguageModel(const MaskedLanguageModelConfig& config,
                                         const SourceShape& source)
    : attends_(!Normaliser(config.self.choices().normaliser).row().running_sums),
      masked_share_(config.masked_share) {
  config.check();
  if (source.is_frames()) fail("model.type is encoder, which learns from texts; take classifier");
  encoder_ = register_module("encoder",
                             std::make_shared<SourceEncoder>(source, config, /*class_token=*/true));
  bias_ = register_parameter("bias", torch::zeros({source.tokens}));
}

Tensor MaskedLanguageModel::vectors(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  // Without that of the class token.
  return encoder_->forward(to_device(source), lengths, pass.at_site({NetworkPart::encoder}))
      .vectors.slice(1, 1);
}

Tensor MaskedLanguageModel::logits(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  return output().logits(vectors(source, lengths, pass));
}

Tensor MaskedLanguageModel::objective(const Batch& batch, const Pass& pass, double smoothing) {
  const at::Generator draws =
      pass.generator ? *pass.generator : at::make_generator<at::CPUGeneratorImpl>(1);
  const MaskedTokens masked = mask_tokens(batch.source, batch.source_lengths, masked_share_,
                                          output().weight.size(0), draws);
  const Tensor loss = token_loss(
      vectors(masked.shown, batch.source_lengths, pass).reshape({-1, output().weight.size(1)}),
      output(), to_device(masked.asked).flatten(), pass, smoothing, Vocabulary::padding,
      Vocabulary::first_target);
  const double asked = (masked.asked != Vocabulary::padding).sum().item<double>();
  return loss * (batch.target_lengths.sum().item<double>() / asked);
}

Tensor MaskedLanguageModel::log_probabilities(const Batch& batch, const Pass& pass) {
  return logits(hidden_unknown(batch.source), batch.source_lengths, pass)
      .log_softmax(-1, at::kDouble);
}

TopVectors MaskedLanguageModel::top_vectors(int64_t source_length, int64_t) const {
  return {1, at::eye(source_length + 1).slice(0, 1)};
}

Tensor MaskedLanguageModel::encodings(const Tensor& source, const Tensor& lengths,
                                      const Pass& pass) {
  return vectors(source, lengths, pass);
}

struct MaskedLanguageModel::State : DecodingState {
  State(MaskedLanguageModel& its_network, const Tensor& its_source, const Tensor& its_lengths,
        const Pass& pass)
      : network(its_network),
        source(network.to_device(its_source)),
        lengths(network.to_device(its_lengths)),
        vectors(network.vectors(hidden_unknown(its_source), its_lengths, pass)) {}

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& pass) override;

  void reorder(const Tensor& rows, bool same_sources) override {
    if (same_sources) return;
    for (Tensor* each : {&source, &lengths, &vectors, &weights}) *each = selected_rows(*each, rows);
  }

  MaskedLanguageModel& network;
  int64_t answered = 0;  // tokens
  Tensor source, lengths, vectors;
  Tensor weights;  // [N, S, S]; undefined until a step is asked for them
};

std::unique_ptr<DecodingState> MaskedLanguageModel::start(const Tensor& source,
                                                          const Tensor& lengths, const Pass& pass) {
  return std::make_unique<State>(*this, source, lengths, pass);
}

StepResult MaskedLanguageModel::State::step(const Tensor& /*tokens*/, bool with_weights,
                                            const Pass& pass) {
  const int64_t place = answered++;
  const Tensor token = source.select(1, place);
  Tensor guessed = network.output().logits(vectors.select(1, place));
  guessed.slice(1, 0, first_token).fill_(impossible);
  const Tensor known = at::full_like(guessed, impossible).scatter_(1, token.unsqueeze(1), 0.0);
  StepResult result;
  result.log_probabilities =
      at::where((token == Vocabulary::unknown).unsqueeze(1), guessed.log_softmax(1), known);
  if (!with_weights || !network.attends_) return result;
  if (!weights.defined()) {
    AttentionTrace trace;
    network.vectors(hidden_unknown(source), lengths, pass.watched_by(trace));
    weights = trace.attentions().back().weights().mean(1).slice(1, 1).slice(2, 1);
  }
  result.weights = weights.select(1, place);
  return result;
}

}  // namespace attend
