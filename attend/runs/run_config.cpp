#include "attend/runs/run_config.h"

#include <filesystem>

#include "attend/base/error.h"

namespace attend {
namespace {

// What the command says of these settings, where `all` of those it may speak of are there; of one
// alone where not.
void apply(const TrainOptions& options, const Settings& settings, bool all) {
  const auto told = [&](std::string_view key) { return all || key == settings[0].key; };
  if (!options.config.empty()) {
    if (all)
      read_toml(settings, options.config);
    else
      read_toml_key(settings[0], options.config);
  }
  read_environment(settings);
  if (!options.source_units.empty() && told("data.source_units"))
    assign(settings, "data.source_units=" + options.source_units);
  if (!options.target_units.empty() && told("data.target_units"))
    assign(settings, "data.target_units=" + options.target_units);
  for (const std::string& assignment : options.assignments)
    if (told(std::string_view(assignment).substr(0, assignment.find('='))))
      assign(settings, assignment);
}

// Error where the command asks for another value than the one in the folder. Code files were copied
// there, under another name, and sizes of images may have been found out.
void check_kept(const Settings& kept, const Settings& asked, const std::string& folder) {
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].key.ends_with("bpe") || kept[i].key.starts_with("data.image_")) continue;
    const auto value = [&](const Settings& settings) {
      const std::string table = to_toml({settings[i]});
      const size_t begin = table.find(" = ") + 3;
      return table.substr(begin, table.find('\n', begin) - begin);
    };
    if (value(kept) != value(asked))
      fail("{} = {}, and the model in {} was begun with {}; with --resume only train.* can change",
           kept[i].key, value(asked), folder, value(kept));
  }
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
  // Which other keys there are, and some defaults, depend on these two.
  apply(options, {config.model.type_setting()}, /*all=*/false);
  set_type_defaults(config);
  apply(options, {config.text.source_units_setting()}, /*all=*/false);
  apply(options, config.settings(), /*all=*/true);
  config.model.check();
  return config;
}

RunConfig stored_config(const TrainOptions& options) {
  RunConfig config;
  const PairModel stored = load_description(options.out);
  config.model = stored.config;
  set_type_defaults(config);
  config.text = stored.text;
  const std::string path = options.out + "/training.toml";
  if (std::filesystem::exists(path)) read_toml(config.train.settings(), path);
  RunConfig asked = config;
  apply(options, {asked.model.type_setting()}, /*all=*/false);
  check_kept({config.model.type_setting()}, {asked.model.type_setting()}, options.out);
  apply(options, {asked.text.source_units_setting()}, /*all=*/false);
  check_kept({config.text.source_units_setting()}, {asked.text.source_units_setting()},
             options.out);
  apply(options, asked.settings(), /*all=*/true);
  check_kept(config.model.settings(), asked.model.settings(), options.out);
  if (options.init.empty()) check_kept(config.text.settings(), asked.text.settings(), options.out);
  config.train = asked.train;
  return config;
}

}  // namespace attend
