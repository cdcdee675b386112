#include "attend/models/model_config.h"

#include "attend/base/error.h"

namespace attend {
namespace {

// f of the settings of the type that is chosen.
template <class Config, class F>
auto with_chosen(Config& config, F f) {
  if (config.type == "classifier") return f(config.classifier);
  if (config.type == "transformer") return f(config.transformer);
  if (config.type == "vit") return f(config.vit);
  return f(config.seq2seq);
}

std::shared_ptr<PairNetwork> make(const Seq2SeqConfig& config, const SourceShape& source,
                                  int64_t targets) {
  return std::make_shared<Seq2Seq>(config, source, targets);
}

std::shared_ptr<PairNetwork> make(const TransformerConfig& config, const SourceShape& source,
                                  int64_t targets) {
  return std::make_shared<Transformer>(config, source, targets);
}

std::shared_ptr<PairNetwork> make(const ClassifierConfig& config, const SourceShape& source,
                                  int64_t targets) {
  return std::make_shared<Classifier>(config, source, targets);
}

// Embeddings and some of the matrices.
int64_t weights_of(const Seq2SeqConfig& config, int64_t sources, int64_t targets) {
  return config.embedding * (sources + targets) + 4 * config.hidden * config.hidden;
}

int64_t weights_of(const TransformerConfig& config, int64_t sources, int64_t targets) {
  const int64_t layer = config.depth * (2 * config.depth + 2 * config.feed_forward);
  return config.depth * (config.tied == "all" ? sources : sources + targets) +
         layer * (config.encoder_layers + config.decoder_layers);
}

int64_t weights_of(const ClassifierConfig& config, int64_t sources, int64_t) {
  const int64_t layer = config.depth * (2 * config.depth + 2 * config.feed_forward);
  return config.depth * (sources + config.hidden) + layer * config.layers;
}

}  // namespace

Setting ModelConfig::type_setting() {
  return {"model.type",
          &type,
          "what the model is: seq2seq (recurrent) and transformer answer with a sequence, "
          "classifier with a label, and so does vit, the Vision Transformer",
          {},
          {},
          {"seq2seq", "transformer", "classifier", "vit"}};
}

Settings ModelConfig::settings() {
  Settings all = {type_setting()};
  for (Setting& setting : with_chosen(*this, [](auto& chosen) { return chosen.settings(); }))
    all.push_back(std::move(setting));
  return all;
}

void ModelConfig::check() const {
  with_chosen(*this, [](const auto& chosen) { chosen.check(); });
}

int64_t ModelConfig::maximum_source_length() const {
  return with_chosen(*this, [](const auto& chosen) { return chosen.maximum_source_length; });
}

std::shared_ptr<PairNetwork> ModelConfig::make_network(const SourceShape& source,
                                                       int64_t target_symbols) const {
  return with_chosen(*this,
                     [&](const auto& chosen) { return make(chosen, source, target_symbols); });
}

int64_t ModelConfig::least_weights(const SourceShape& source, int64_t target_symbols) const {
  return with_chosen(*this, [&](const auto& chosen) {
    return weights_of(chosen, source.symbols, target_symbols);
  });
}

TextConfig default_text(const ModelConfig& model) {
  if (model.type == "vit") return {.source_units = "image", .target_units = "line"};
  if (model.is_classifier()) return {.source_units = "space", .target_units = "line"};
  return {};
}

}  // namespace attend
