#include "attend/runs/description.h"

#include <filesystem>

#include "attend/models/model_folder.h"
#include "attend/models/pair_model.h"
#include "attend/runs/history.h"

namespace attend {
namespace {

using nlohmann::json;

json configuration(PairModel& model) {
  json values = json::object();
  for (const Settings& settings : {model.text.settings(), model.config.settings()})
    for (const Setting& setting : settings)
      std::visit(
          [&](const auto& value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, NamedVariable>)
              values[setting.key] = value.name();
            else
              values[setting.key] = *value;
          },
          setting.value);
  return values;
}

}  // namespace

json describe_model(const std::string& folder) {
  PairModel model = load_pair_model(folder);
  json parameters = json::array();
  int64_t total = 0;
  for (const auto& item : model.network->named_parameters()) {
    parameters.push_back({{"name", item.key()},
                          {"shape", item.value().sizes().vec()},
                          {"count", item.value().numel()}});
    total += item.value().numel();
  }
  return {{"model", folder},
          {"config", configuration(model)},
          {"source_tokens", model.source_vocabulary.size()},
          {"target_tokens", model.target_tokens()},
          {"parameters", parameters},
          {"parameter_count", total},
          {"weight_bytes", std::filesystem::file_size(folder + "/weights.safetensors")},
          {"history", read_history(folder)}};
}

}  // namespace attend
