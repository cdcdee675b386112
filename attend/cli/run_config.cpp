#include "attend/cli/run_config.h"

#include <filesystem>

#include "attend/base/error.h"

namespace attend {
namespace {

// Which other keys there are, and some defaults, depend on these.
void choose_type(const TrainOptions& options, RunConfig& config) {
  const Settings type = {config.model.type_setting()};
  if (!options.config.empty()) read_toml_key(type[0], options.config);
  read_environment(type);
  for (const std::string& assignment : options.assignments)
    if (assignment.starts_with(type[0].key + "=")) assign(type, assignment);
  set_type_defaults(config);
  const Settings units = {config.text.source_units_setting()};
  if (!options.config.empty()) read_toml_key(units[0], options.config);
  read_environment(units);
  if (!options.source_units.empty()) assign(units, units[0].key + "=" + options.source_units);
  for (const std::string& assignment : options.assignments)
    if (assignment.starts_with(units[0].key + "=")) assign(units, assignment);
}

}  // namespace

Settings RunConfig::settings() {
  Settings all = text.settings();
  for (Setting& setting : model.settings()) all.push_back(std::move(setting));
  for (Setting& setting : train.settings()) all.push_back(std::move(setting));
  return all;
}

void set_type_defaults(RunConfig& config) {
  config.text = default_text(config.model);
  if (config.model.is_classifier()) config.train.metric = "accuracy";
  if (config.model.learns_from_text()) {
    config.train.metric = "loss";
    config.train.label_smoothing = 0;
  }
}

RunConfig new_config(const TrainOptions& options) {
  RunConfig config;
  choose_type(options, config);
  const Settings settings = config.settings();
  if (!options.config.empty()) read_toml(settings, options.config);
  read_environment(settings);
  if (!options.source_units.empty()) assign(settings, "data.source_units=" + options.source_units);
  if (!options.target_units.empty()) assign(settings, "data.target_units=" + options.target_units);
  for (const std::string& assignment : options.assignments) assign(settings, assignment);
  config.model.check();
  return config;
}

RunConfig stored_config(const TrainOptions& options) {
  RunConfig config;
  const PairModel stored = load_description(options.out);
  config.model = stored.model;
  set_type_defaults(config);
  config.text = stored.text;
  const Settings train = config.train.settings();
  const std::string path = options.out + "/training.toml";
  if (std::filesystem::exists(path)) read_toml(train, path);
  for (const std::string& assignment : options.assignments) {
    if (!assignment.starts_with("train."))
      fail("--set {}: with --resume only train.* can be set; the rest is in {}/config.toml",
           assignment, options.out);
    assign(train, assignment);
  }
  return config;
}

}  // namespace attend
