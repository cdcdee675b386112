#include "attend/models/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attend/base/error.h"

namespace attend {
namespace {

// Same key and type; enums must have the same choices.
bool are_alike(const Setting& a, const Setting& b) {
  if (a.key != b.key || a.value.index() != b.value.index() || a.choices != b.choices) return false;
  const auto* names = std::get_if<NamedVariable>(&a.value);
  return names == nullptr || names->names() == std::get<NamedVariable>(b.value).names();
}

}  // namespace

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

const AnswerKind& ModelConfig::answer_kind(const TextConfig& text) const {
  const AnswerKind& own = *row().answers;
  if (const AnswerKind* found = own.for_targets(text.target)) return *found;
  std::vector<std::string> others;
  for (const ModelType* row : model_types())
    if (row->answers->for_targets(text.target) != nullptr) others.push_back(row->name);
  fail("data.target is {}, which model.type = {} does not answer; take {}", name_of(text.target),
       type, fmt::join(others, " or "));
}

Setting ModelConfig::type_setting() {
  std::vector<std::string> names, described;
  for (const ModelType* row : model_types()) {
    names.push_back(row->name);
    described.push_back(fmt::format("{} ({})", row->name, row->summary));
  }
  return {"model.type", &type, fmt::format("type of the model: {}", fmt::join(described, ", ")),
          {},           {},    names};
}

Settings ModelConfig::settings() {
  Settings all = {type_setting()};
  append(all, chosen().settings());
  return all;
}

void ModelConfig::take_settings(const ModelConfig& other) {
  ModelConfig copy = other;  // non-const, so that its settings can be bound
  for (const Setting& own : chosen().settings())
    for (const Setting& their : copy.chosen().settings())
      if (are_alike(own, their)) take_value(own, their);
}

}  // namespace attend
