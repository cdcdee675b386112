#include "attend/models/tagger.h"

#include "attend/base/error.h"
#include "attend/models/labels-inl.h"
#include "attend/nn/dropout.h"
#include "attend/nn/token_loss.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;
using internal::first_label;
using internal::label_log_probabilities;

}  // namespace

TaggerConfig::TaggerConfig() {
  recurrent_layers = 1;
  layers = 1;
}

Settings TaggerConfig::settings() {
  Settings all = {
      {"model.word_dropout", &word_dropout, "probability of replacing words by unknown in training",
       0, 0.95},
      {"model.output_dropout", &output_dropout,
       "dropout probability of the vectors before the output", 0, 0.95},
      {"model.class_token", &class_token,
       "whether layers read an additional class vector, as in type encoder"},
      {"model.output_layer", &output_layer, "whether a layer and a norm precede the output"},
      {"model.output_norm", &output_norm, "whether that layer has a norm"}};
  append(all, SourceEncoderConfig::settings());
  return all;
}

Tagger::Tagger(const TaggerConfig& config, const SourceShape& source, int64_t target_tokens)
    : TokenwiseNetwork(config, source,
                       {.class_token = config.class_token && config.layers > 0,
                        .output_layer = config.output_layer,
                        .output_norm = config.output_norm}),
      word_dropout_(config.word_dropout),
      output_dropout_(config.output_dropout),
      output_(register_module("output", Linear(config.depth, target_tokens - first_label))) {}

Tensor Tagger::logits(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  const Tensor read =
      read_off(vectors(drop_words(source, word_dropout_, pass), lengths, pass), pass);
  return pass.watched(WatchedVectors::logits,
                      output_->forward(attend::dropout(read, output_dropout_, pass), pass));
}

Tensor Tagger::objective(const Batch& batch, const Pass& pass, double smoothing) {
  if (batch.target.sizes() != batch.source.sizes())
    fail("[tagger] targets of {} tokens for sources of {}; each token has one label",
         batch.target.size(1), batch.source.size(1));
  return smoothed_cross_entropy(logits(batch.source, batch.source_lengths, pass).flatten(0, 1),
                                to_device(batch.target).flatten() - first_label, smoothing,
                                Vocabulary::padding - first_label);
}

Tensor Tagger::log_probabilities(const Batch& batch, const Pass& pass) {
  return label_log_probabilities(logits(batch.source, batch.source_lengths, pass), at::kDouble);
}

Tensor Tagger::answered(const Tensor& /*tokens*/, const Tensor& vectors) {
  return label_log_probabilities(output_->forward(read_off(vectors, {}), {}),
                                 vectors.scalar_type());
}

}  // namespace attend
