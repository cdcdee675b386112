#include "attend/models/masked_language_model.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t first_token = Vocabulary::unknown + 1;
constexpr double impossible = -std::numeric_limits<double>::infinity();

}  // namespace

MaskedLanguageModelConfig::MaskedLanguageModelConfig() { layers = 4; }

Settings MaskedLanguageModelConfig::settings() {
  Settings all = {
      {"model.masked_share", &masked_share, "of the tokens, which are asked for", 1e-3, 1},
      {"model.class_token", &class_token,
       "whether layers read a vector more, with which a classifier of pooling class begins"},
      {"model.output_layer", &output_layer,
       "whether a layer and a norm stand between the vectors and the output"}};
  append(all, SourceEncoderConfig::settings());
  return all;
}

void MaskedLanguageModelConfig::check() const {
  SourceEncoderConfig::check();
  if (layers == 0) fail("model.layers is 0; what is hidden is guessed by layers: set 1 or more");
}

MaskedTokens mask_tokens(const Tensor& source, const Tensor& lengths, double share, int64_t tokens,
                         const at::Generator& generator) {
  constexpr int64_t axis = 1;
  const Tensor outside = (at::arange(source.size(1), lengths.options()) >= lengths.unsqueeze(1))
                             .logical_or(source == Vocabulary::unknown);
  const Tensor draw = at::rand(source.sizes(), generator).masked_fill(outside.cpu(), 2);
  const Tensor known = outside.cpu().logical_not().sum(axis, /*keepdim=*/true);
  const Tensor count = (known * share).round().clamp_min(1);
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
    : TokenwiseNetwork(config, source,
                       {.class_token = config.class_token, .output_layer = config.output_layer}),
      masked_share_(config.masked_share) {
  config.check();
  bias_ = register_parameter("bias", torch::zeros({source.tokens}));
}

Tensor MaskedLanguageModel::logits(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  return pass.watched(WatchedVectors::logits,
                      output().logits(read_off(vectors(source, lengths, pass), pass)));
}

Tensor MaskedLanguageModel::objective(const Batch& batch, const Pass& pass, double smoothing) {
  const at::Generator draws =
      pass.generator ? *pass.generator : at::make_generator<at::CPUGeneratorImpl>(1);
  const MaskedTokens masked = mask_tokens(batch.source, batch.source_lengths, masked_share_,
                                          output().weight.size(0), draws);
  const Tensor loss = token_loss(read_off(vectors(masked.shown, batch.source_lengths, pass), pass)
                                     .reshape({-1, output().weight.size(1)}),
                                 output(), to_device(masked.asked).flatten(), pass, smoothing,
                                 Vocabulary::padding, Vocabulary::first_target);
  const double asked = std::max(1.0, (masked.asked != Vocabulary::padding).sum().item<double>());
  return loss * (batch.target_lengths.sum().item<double>() / asked);
}

Tensor MaskedLanguageModel::log_probabilities(const Batch& batch, const Pass& pass) {
  return logits(as_asked(batch.source), batch.source_lengths, pass).log_softmax(-1, at::kDouble);
}

// What is unknown is to be filled in.
Tensor MaskedLanguageModel::as_asked(const Tensor& source) const {
  return source.masked_fill(source == Vocabulary::unknown, mask_token);
}

Tensor MaskedLanguageModel::answered(const Tensor& tokens, const Tensor& vectors) {
  Tensor guessed = output().logits(read_off(vectors, {}));
  guessed.slice(1, 0, first_token).fill_(impossible);
  const Tensor known = at::full_like(guessed, impossible).scatter_(1, tokens.unsqueeze(1), 0.0);
  return at::where((tokens == Vocabulary::unknown).unsqueeze(1), guessed.log_softmax(1), known);
}

}  // namespace attend
