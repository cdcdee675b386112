#include "attend/runs/run_config.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/data_format.h"
#include "attend/metrics/metric.h"
#include "attend/models/model_folder.h"
#include "attend/runs/size_defaults.h"

namespace attend {
namespace {

// Collects the keys of all model types, because the environment may hold settings of another type.
void check_names_in_environment() {
  RunConfig config;
  config.text.pairs = PairTexts::optional;
  std::vector<std::string> keys;
  const auto add = [&](const Settings& settings) {
    for (const Setting& setting : settings) keys.push_back(setting.key);
  };
  for (const TargetKind target :
       {TargetKind::number, TargetKind::labels, TargetKind::probability}) {
    config.text.target = target;
    add(config.text.settings());
  }
  for (const std::string& units : config.text.source_units_setting().choices) {
    config.text.source_units = units;
    add(config.text.settings());
  }
  for (const DataFormatRow& row : data_formats()) add(row.settings(config.text));
  for (const ModelType* type : model_types()) {
    config.model.type = type->name;
    add(config.model.settings());
  }
  add(config.train.settings());
  check_environment(keys);
}

// Settings of the command: a file, the environment, --set and flags.
class Command {
 public:
  explicit Command(const TrainOptions& options) : options_(options) {
    check_names_in_environment();
    if (options.config.empty()) return;
    file_.emplace(options.config);
    check_format(*file_, options.config);
  }

  // Applies the command to all settings it may name.
  void apply(const Settings& settings) const {
    if (file_) read_config(*file_, settings);
    read_environment(settings);
    if (!options_.source_units.empty())
      assign(settings, "data.source_units=" + options_.source_units);
    if (!options_.target_units.empty())
      assign(settings, "data.target_units=" + options_.target_units);
    for (const std::string& assignment : options_.assignments) assign(settings, assignment);
  }

  // Error if the command sets a key that only exists for number targets.
  void check_no_numbers(TargetKind target) const {
    NumberScale scale;
    for (const Setting& setting : scale.settings()) {
      double& value = *std::get<double*>(setting.value);
      value = std::numeric_limits<double>::quiet_NaN();
      bool is_set = false;
      if (file_) file_->read_key(setting);
      is_set = !std::isnan(value);
      for (const std::string& assignment : options_.assignments)
        is_set = is_set || assigned_key(assignment) == setting.key;
      if (is_set)
        fail(
            "{}: needs numeric targets, and data.target is {}; leave it out, or set data.target "
            "= number",
            setting.key, name_of(target));
    }
  }

  // Applies the command to one setting that others depend on.
  void apply(const Setting& setting) const {
    if (file_) file_->read_key(setting);
    read_environment({setting});
    if (!options_.source_units.empty() && setting.key == "data.source_units")
      assign({setting}, "data.source_units=" + options_.source_units);
    for (const std::string& assignment : options_.assignments)
      if (assigned_key(assignment) == setting.key) assign({setting}, assignment);
  }

 private:
  const TrainOptions& options_;
  std::optional<TomlFile> file_;
};

// Applies the settings that decide which other text keys exist.
void apply_deciding(const Command& command, TextConfig& text) {
  command.apply(text.format_setting());
  if (text.format_row().is_split()) return;
  command.apply(text.source_units_setting());
  command.apply(text.pairs_setting());
}

void check_fit(const RunConfig& config) {
  config.model.chosen().check();
  const AnswerKind& kind = config.answer_kind();
  if (!kind.has_answers())
    fail(
        "model.type = {}: cannot be trained by itself; begin another type, such as model.type = "
        "classifier, with its weights by --init",
        config.model.type);
  if (const DataFormat read = config.model.row().text.format; config.text.format != read) {
    std::vector<std::string> readers;
    for (const ModelType* type : model_types())
      if (type->text.format == config.text.format) readers.push_back(type->name);
    fail(
        "data.format = {}: model.type = {} reads {}; leave data.format out, or set model.type to "
        "{}",
        name_of(config.text.format), config.model.type, name_of(read), fmt::join(readers, " or "));
  }
  const Metric& metric = metric_named(config.train.metric);
  if (!metric.of_answers() || kind.ranks() == metric.of_ranks()) return;
  fail("train.metric = {}: {}, and model.type = {} {}; set it to {}", metric.name,
       metric.of_ranks() ? "needs a ranking" : "compares answers", config.model.type,
       metric.of_ranks() ? "does not rank" : "ranks items", kind.metric());
}

// The value as written in a settings file.
std::string value_text(const Setting& setting) {
  const std::string table = to_toml({setting});
  const size_t begin = table.find(" = ") + 3;
  return table.substr(begin, table.find('\n', begin) - begin);
}

// Error if the command asks for another value than the folder has. Skips code files, which were
// copied to the folder under another name, and measured settings.
void check_kept(const Settings& kept, const Settings& asked, const std::string& folder) {
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].is_file || kept[i].is_measured) continue;
    const std::string before = value_text(kept[i]), now = value_text(asked[i]);
    if (before != now)
      fail("{} = {}, and the model in {} was begun with {}; with --resume only train.* can change",
           kept[i].key, now, folder, before);
  }
}

// Whether two settings have equal values, or name files with equal contents.
bool is_same(const Setting& own, const Setting& their) {
  if (value_text(own) == value_text(their)) return true;
  if (!own.is_file) return false;
  const std::string& path = *std::get<std::string*>(own.value);
  const std::string& other = *std::get<std::string*>(their.value);
  return !path.empty() && !other.empty() && read_file(path) == read_file(other);
}

// Error if the weights of --init were trained with another value of a key.
void check_as_initial(const Settings& own, const Settings& theirs, const std::string& folder) {
  for (const Setting& setting : own)
    for (const Setting& their : theirs)
      if (setting.key == their.key && !is_same(setting, their))
        fail("{} = {}, and the weights of --init {} were trained with {}; leave it out",
             setting.key, value_text(setting), folder, value_text(their));
}

// Copies the settings that the weights of another model leave open: the kind of targets and, unless
// its target tokens are used, their splitting.
void take_targets(const TextConfig& other, bool takes_tokens, TextConfig& text) {
  text.target = other.target;
  text.target_scale = other.target_scale;
  if (takes_tokens) return;
  text.target_units = other.target_units;
  text.target_bpe = other.target_bpe;
  text.target_tokenizer = other.target_tokenizer;
  text.target_language = other.target_language;
  text.joint_vocabulary = other.joint_vocabulary;
}

// Sets the defaults of a model that starts from the weights of another model.
void begin_as(const PairModel& initial, RunConfig& config) {
  config.model.take_settings(initial.config);
  if (config.text.format != initial.text.format) return;
  const TextConfig type_defaults = config.text;
  config.text = initial.text;
  take_targets(type_defaults, takes_target_tokens(initial, config.model), config.text);
  // The type may read only pairs, and the initial model texts.
  if (type_defaults.pairs != PairTexts::never) config.text.pairs = type_defaults.pairs;
}

// Error if a model would use the weights of the initial model differently, or read other texts than
// they were trained on.
void check_initial(RunConfig& config, PairModel& initial, const std::string& folder) {
  check_as_initial(config.model.chosen().weight_settings(),
                   initial.config.chosen().weight_settings(), folder);
  TextConfig theirs = initial.text;
  take_targets(config.text, takes_target_tokens(initial, config.model), theirs);
  theirs.references = config.text.references;
  theirs.minimum_count = config.text.minimum_count;
  theirs.pairs = config.text.pairs;  // a pair is read as a longer text
  theirs.source_language = config.text.source_language;
  theirs.target_language = config.text.target_language;
  theirs.prompts = config.text.prompts;
  theirs.default_prompt = config.text.default_prompt;
  check_as_initial(config.text.settings(), theirs.settings(), folder);
}

// Error if training settings do not apply to the kind of targets.
void check_train(const RunConfig& config) {
  const TrainConfig& train = config.train;
  const Metric& metric = metric_named(train.metric);
  const AnswerKind& kind = config.answer_kind();
  const bool numbers = !kind.has_probabilities();
  if (!kind.shares_probability() && train.label_smoothing > 0)
    fail(
        "train.label_smoothing = {}: spreads probability over labels, which data.target = {} "
        "lacks; set it to 0",
        train.label_smoothing, name_of(config.text.target));
  if (numbers && metric.of_answers() && !metric.of_numbers())
    fail(
        "train.metric = {}: does not compare numbers, and data.target is number; set it to one of "
        "{}",
        train.metric, fmt::join(metric_names(&Metric::of_numbers), ", "));
  if (metric.of_scores() && !kind.is_label())
    fail("train.metric = {}: needs two labels, and model.type = {} {}; set it to {}", train.metric,
         config.model.type, kind.is_label_set() ? "answers any number" : "has no labels",
         kind.metric());
  if (!numbers && metric.of_numbers())
    fail("train.metric = {}: compares numbers; set data.target = number, or another metric",
         train.metric);
}

}  // namespace

Settings RunConfig::settings() {
  Settings all = text.settings();
  append(all, model.settings());
  append(all, train.settings());
  return all;
}

void set_type_defaults(RunConfig& config, TargetKind target) {
  const ModelType& type = config.model.row();
  config.text = type.text;
  config.text.target = target;
  const AnswerKind& kind = config.answer_kind();
  config.train.metric = kind.metric();
  config.train.label_smoothing = kind.shares_probability() ? type.label_smoothing : 0;
}

bool takes_target_tokens(const PairModel& initial, const ModelConfig& model) {
  return initial.config.type == model.type && !model.row().answers->has_labels();
}

RunConfig new_config(const TrainOptions& options) {
  RunConfig config;
  const Command command(options);
  std::optional<PairModel> initial;
  if (!options.init.empty()) initial = load_description(options.init);
  if (initial) config.model.type = initial->config.type;
  // Other keys and some defaults depend on these three.
  command.apply(config.model.type_setting());
  config.text.target = config.model.row().text.target;
  command.apply(config.text.target_setting());
  if (!config.text.wants_numbers()) command.check_no_numbers(config.text.target);
  set_type_defaults(config, config.text.target);
  if (initial) begin_as(*initial, config);
  leave_to_size(config);
  apply_deciding(command, config.text);
  command.apply(config.settings());
  if (initial) check_initial(config, *initial, options.init);
  check_fit(config);
  check_train(config);
  return config;
}

RunConfig stored_config(const TrainOptions& options) {
  RunConfig config;
  const PairModel stored = load_description(options.out);
  config.model = stored.config;
  set_type_defaults(config, stored.text.target);
  config.text = stored.text;
  const std::string path = options.out + "/training.toml";
  if (std::filesystem::exists(path)) TomlFile(path).read(config.train.settings());
  RunConfig asked = config;
  const Command command(options);
  command.apply(asked.model.type_setting());
  check_kept({config.model.type_setting()}, {asked.model.type_setting()}, options.out);
  apply_deciding(command, asked.text);
  command.apply(asked.text.target_setting());
  const auto deciding = [](TextConfig& text) {
    return Settings{text.format_setting(), text.source_units_setting(), text.target_setting(),
                    text.pairs_setting()};
  };
  check_kept(deciding(config.text), deciding(asked.text), options.out);
  command.apply(asked.settings());
  settle_as(asked, config);
  check_kept(config.model.settings(), asked.model.settings(), options.out);
  check_kept(config.text.settings(), asked.text.settings(), options.out);
  config.train = asked.train;
  check_fit(config);
  check_train(config);
  return config;
}

}  // namespace attend
