#include "attend/models/model_config.h"

namespace attend {

Setting ModelConfig::type_setting() {
  return {"model.type",
          &type,
          "what the model is: seq2seq answers with a sequence, classifier with a label",
          {},
          {},
          {"seq2seq", "classifier"}};
}

Settings ModelConfig::settings() {
  Settings all = {type_setting()};
  for (Setting& setting : is_classifier() ? classifier.settings() : seq2seq.settings())
    all.push_back(std::move(setting));
  return all;
}

int64_t ModelConfig::maximum_source_length() const {
  return is_classifier() ? classifier.maximum_source_length : seq2seq.maximum_source_length;
}

TextConfig default_text(const ModelConfig& model) {
  if (model.is_classifier()) return {.source_units = "space", .target_units = "line"};
  return {};
}

}  // namespace attend
