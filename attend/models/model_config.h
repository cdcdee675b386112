#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "attend/models/model_type.h"

namespace attend {

// Description of a network: its type, and settings for every type.
class ModelConfig {
 public:
  ModelConfig();
  ModelConfig(const ModelConfig& other);
  ModelConfig(ModelConfig&&) = default;
  ModelConfig& operator=(const ModelConfig& other);
  ModelConfig& operator=(ModelConfig&&) = default;

  std::string type = "seq2seq";  // a name of model_types()

  // The row of the type, and the settings of the type. Error if the type is unknown.
  const ModelType& row() const { return model_type(type); }
  const NetworkConfig& chosen() const;
  NetworkConfig& chosen();

  // The settings with this struct, whether their type is chosen or not.
  template <class Config>
  const Config& of() const {
    for (const auto& [name, config] : configs_)
      if (auto* found = dynamic_cast<const NetworkConfigOf<Config>*>(config.get()))
        return found->config;
    throw std::logic_error("no type of model has these settings");
  }
  template <class Config>
  Config& of() {
    return const_cast<Config&>(std::as_const(*this).of<Config>());
  }

  // The kind of answers to these texts: the type's, numbers or sets of labels. Error if the type
  // does not support the targets.
  const AnswerKind& answer_kind(const TextConfig& text) const;

  Setting type_setting();
  Settings settings();  // model.type, and the keys model.* of the type

  // Copies the values of all settings that both types have.
  void take_settings(const ModelConfig& other);

 private:
  std::map<std::string, std::unique_ptr<NetworkConfig>> configs_;  // by name of the type
};

}  // namespace attend
