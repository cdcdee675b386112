#include "attend/models/language_model_config.h"

#include <utility>

namespace attend {

LanguageModelConfig::LanguageModelConfig() {
  positions = Positions::learned;
  activation = HiddenActivation::gelu;
  feed_forward = 512;
}

RecommenderConfig::RecommenderConfig() {
  activation = HiddenActivation::relu;
  depth = feed_forward = 64;
  heads = 1;
  layers = 2;
  context = 51;
  embedding_deviation = 0.02;
}

Setting LanguageModelConfig::context_setting() {
  return {"model.context", &context, "context length in tokens, with the start token", 4, 1 << 20};
}

Settings LanguageModelConfig::weight_settings() {
  Settings all = LayersConfig::weight_settings();
  append(all, own_weight_settings());
  if (positions == Positions::learned) all.push_back(context_setting());
  return all;
}

Settings LanguageModelConfig::own_weight_settings() {
  Settings all = token_settings();
  all.push_back(
      {"model.start", &start,
       "whether a start token precedes every text (true), or only texts without a source (false)"});
  return all;
}

Settings LanguageModelConfig::settings() {
  Settings all = {{"model.layers", &layers,
                   "number of layers, each with attention and a feed-forward network", 1, 256},
                  context_setting(),
                  {"model.tied", &tied, "whether the output shares the embedding"},
                  {"model.negatives", &negatives,
                   "number of negative tokens to draw per training step; 0: all tokens", 0, 1e6},
                  {"model.embedding_deviation", &embedding_deviation,
                   "standard deviation of initial token vectors; 0: 1 / sqrt(model.depth)", 0, 10}};
  append(all, own_weight_settings());
  append(all, LayersConfig::settings());
  return all;
}

}  // namespace attend
