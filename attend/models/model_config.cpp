#include "attend/models/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attend {

ModelConfig::ModelConfig() {
  for (const ModelType* row : model_types()) configs_[row->name] = row->config();
}

ModelConfig::ModelConfig(const ModelConfig& other) : type(other.type) {
  for (const auto& [name, config] : other.configs_) configs_[name] = config->clone();
}

ModelConfig& ModelConfig::operator=(const ModelConfig& other) {
  *this = ModelConfig(other);
  return *this;
}

const NetworkConfig& ModelConfig::chosen() const { return *configs_.at(row().name); }

NetworkConfig& ModelConfig::chosen() { return *configs_.at(row().name); }

int64_t ModelConfig::answer_length(int64_t source_tokens) const {
  if (answers_labels()) return 1;
  return row().is_tokenwise() ? source_tokens : 0;
}

Setting ModelConfig::type_setting() {
  std::vector<std::string> names, described;
  for (const ModelType* row : model_types()) {
    names.push_back(row->name);
    described.push_back(fmt::format("{} ({})", row->name, row->summary));
  }
  return {"model.type", &type, fmt::format("what the model is: {}", fmt::join(described, ", ")),
          {},           {},    names};
}

Settings ModelConfig::settings() {
  Settings all = {type_setting()};
  append(all, chosen().settings());
  return all;
}

}  // namespace attend
