#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/predictor.h"
#include "attend/cli/progress.h"
#include "attend/cli/training.h"
#include "attend/data/cmudict.h"
#include "attend/models/pair_model.h"
#include "attend/train/trainer.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

struct RunConfig {
  TextConfig text;
  ModelConfig model;
  TrainConfig train;

  Settings settings() {
    Settings all = text.settings();
    for (Setting& setting : model.settings()) all.push_back(std::move(setting));
    for (Setting& setting : train.settings()) all.push_back(std::move(setting));
    return all;
  }
};

struct PairData {
  std::vector<Example> train, valid;
};

std::atomic<bool> stop_requested = false;
std::atomic<int> stop_signal = 0;

void request_stop(int signal) {
  stop_signal = signal;
  stop_requested = true;
  // A second signal ends the program at once.
  std::signal(signal, SIG_DFL);
}

// Which other keys there are, and what texts are by default, depends on the type.
void choose_type(const TrainOptions& options, RunConfig& config) {
  const Settings type = {config.model.type_setting()};
  if (!options.config.empty()) read_toml_key(type[0], options.config);
  read_environment(type);
  for (const std::string& assignment : options.assignments)
    if (assignment.starts_with(type[0].key + "=")) assign(type, assignment);
  config.text = default_text(config.model);
}

// Flag > environment > file > default.
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

// A single file is split by a hash of the source, as the dictionary is.
PairData read_data(const TrainOptions& options) {
  if (!fs::exists(options.data)) fail("--data {}: no such file or folder", options.data);
  if (fs::is_directory(options.data)) {
    const std::string valid = options.valid.empty() ? options.data + "/valid.tsv" : options.valid;
    return {read_pairs(options.data + "/train.tsv"), read_pairs(valid)};
  }
  PairData data;
  data.train = read_pairs(options.data);
  if (!options.valid.empty()) {
    data.valid = read_pairs(options.valid);
    return data;
  }
  std::vector<Example> all = std::move(data.train);
  data.train.clear();
  for (Example& example : all)
    (part_of(example.source) == Part::valid ? data.valid : data.train)
        .push_back(std::move(example));
  if (data.valid.empty() || data.train.empty())
    fail("{}: {} sources are too few to set some aside for validation; give --valid FILE",
         options.data, all.size());
  return data;
}

// The time of a step grows with the square of its longest target, so that one target that no answer
// could equal would stop training for good.
void leave_out_long_targets(const RunConfig& config, std::vector<Example>& examples,
                            const std::string& name) {
  const auto longest = static_cast<size_t>(longest_answer(config.model.maximum_source_length()));
  const Units units = parse_units(config.text.target_units);
  size_t left_out = 0;
  for (Example& example : examples)
    left_out += std::erase_if(example.targets, [&](const std::string& target) {
      // Splitting is for the few that may be too long.
      return target.size() > longest && split_units(target, units).size() > longest;
    });
  if (left_out == 0) return;
  std::erase_if(examples, [](const Example& example) { return example.targets.empty(); });
  fmt::print(stderr,
             "attend: {}: {} targets of over {} symbols are left out: no answer is that long (3 x "
             "model.maximum_source_length + 10)\n",
             name, left_out, longest);
  if (examples.empty()) fail("{}: holds no other targets; split them", name);
}

void tell_cut_sources(const RunConfig& config, const std::vector<Example>& examples,
                      const std::string& name) {
  const auto longest = static_cast<size_t>(config.model.maximum_source_length());
  const Units units = parse_units(config.text.source_units);
  const auto cut = std::count_if(examples.begin(), examples.end(), [&](const Example& example) {
    return example.source.size() > longest && split_units(example.source, units).size() > longest;
  });
  if (cut > 0)
    fmt::print(stderr,
               "attend: {}: {} sources are cut to their first {} symbols "
               "(model.maximum_source_length)\n",
               name, cut, longest);
}

void bound_texts(const RunConfig& config, const std::string& name, PairData& data) {
  for (auto* examples : {&data.train, &data.valid}) {
    const std::string part = name + (examples == &data.train ? ", training" : ", validation");
    leave_out_long_targets(config, *examples, part);
    tell_cut_sources(config, *examples, part);
  }
}

// What a start that was killed leaves: save_description writes config.toml last.
bool is_unfinished_start(const std::string& folder) {
  const std::set<std::string> first = {"training.toml", "source.vocab", "target.vocab"};
  for (const auto& entry : fs::directory_iterator(folder))
    if (!first.contains(entry.path().filename().string())) return false;
  return fs::exists(folder + "/training.toml");
}

// Whether the folder is a model's already. Error when it holds something else.
bool holds_model(const std::string& folder) {
  if (!fs::exists(folder)) return false;
  if (!fs::is_directory(folder)) fail("--out {}: is a file; a folder is wanted", folder);
  remove_temporary_files(folder);
  if (fs::is_empty(folder) || is_unfinished_start(folder)) return false;
  if (!fs::exists(folder + "/config.toml"))
    fail("--out {}: holds other files and no model; choose a new folder", folder);
  return true;
}

// What a folder was trained with, train.* changed by --set.
RunConfig stored_config(const TrainOptions& options) {
  RunConfig config;
  const PairModel stored = load_description(options.out);
  config.text = stored.text;
  config.model = stored.model;
  const Settings train = config.train.settings();
  const std::string path = options.out + "/training.toml";
  if (fs::exists(path)) read_toml(train, path);
  for (const std::string& assignment : options.assignments) {
    if (!assignment.starts_with("train."))
      fail("--set {}: with --resume only train.* can be set; the rest is in {}/config.toml",
           assignment, options.out);
    assign(train, assignment);
  }
  return config;
}

void create_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    fail("--out {}: cannot be created: {}; choose another folder", folder, error.message());
}

PairModel prepare_model(const TrainOptions& options, RunConfig& config, const PairData& data,
                        bool resume) {
  torch::manual_seed(static_cast<uint64_t>(config.train.seed));
  if (resume) return load_description(options.out);
  PairModel model = make_pair_model(config.text, config.model, data.train);
  check_labels(model, data.train, options.data);
  check_labels(model, data.valid, options.valid.empty() ? options.data : options.valid);
  create_folder(options.out);
  write_file(options.out + "/training.toml", to_toml(config.train.settings(), true));
  save_description(model, options.out);
  return model;
}

TrainOutcome run_training(const TrainOptions& options, const RunConfig& config,
                          const PairModel& model, const PairData& data, bool resume) {
  std::vector<std::shared_ptr<PairNetwork>> replicas = {model.network};
  while (static_cast<int64_t>(replicas.size()) < config.train.replicas)
    replicas.push_back(model.make_network());
  const auto averaged = model.make_network();
  averaged->eval();
  const std::vector<EncodedPair> pairs = model.encode(data.train);
  std::vector<Example> checked = data.valid;
  if (static_cast<int64_t>(checked.size()) > config.train.validation_examples)
    checked.resize(static_cast<size_t>(config.train.validation_examples));
  const std::vector<EncodedPair> checked_pairs = model.encode(checked);
  Predictor predictor(model, averaged, config.train.replicas);
  ProgressPrinter printer(model.model.is_classifier() ? "error" : "token error");

  TrainTask task;
  task.replicas.assign(replicas.begin(), replicas.end());
  task.averaged = averaged;
  PairBatches source(pairs, config.train);
  task.source = &source;
  task.objective = [&](int64_t replica, const Batch& batch, const Noise& noise) {
    return replicas[static_cast<size_t>(replica)]->objective(batch, noise,
                                                             config.train.label_smoothing);
  };
  task.validate = [&] {
    const auto errors = evaluate(predictor, model, checked, {}).errors;
    return Validation{predictor.loss(checked_pairs), errors.token_error_rate()};
  };
  task.report = [&](const TrainProgress& progress) { printer.show(progress); };
  task.stop = &stop_requested;
  task.folder = options.out;
  return train(config.train, task, resume);
}

void run_train(const TrainOptions& options) {
  if (options.dump_config && !options.resume) {
    fmt::print("{}", training_config(options));
    return;
  }
  const auto [outcome, labels] = train_model(options);
  const double best = labels ? 1 - outcome.best_metric : outcome.best_metric;
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"model", options.out},
                                      {"steps", outcome.steps},
                                      {labels ? "valid_accuracy" : "valid_token_error_rate", best},
                                      {"seconds", outcome.seconds}}
                           .dump());
    return;
  }
  fmt::print(stderr, "trained {} steps in {}; best validation {} {:.2f} %; model in {}\n",
             outcome.steps, clock_time(outcome.seconds), labels ? "accuracy" : "token error",
             100 * best, options.out);
}

}  // namespace

std::string training_config(const TrainOptions& options) {
  RunConfig config = new_config(options);
  return to_toml(config.settings(), /*with_help=*/true);
}

Trained train_model(const TrainOptions& options) {
  if (options.data.empty())
    fail("--data is missing: a folder with train.tsv and valid.tsv, or a TSV file");
  if (options.out.empty()) fail("--out is missing: the folder to write the model to");
  const bool resume = holds_model(options.out);
  if (resume && !options.resume)
    fail(
        "--out {}: holds a model already; add --resume to train it further, or choose a new folder",
        options.out);
  RunConfig config = resume ? stored_config(options) : new_config(options);
  PairData data = read_data(options);
  bound_texts(config, options.data, data);
  check_pairs(data.train, parse_units(config.text.target_units), options.data);
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  const PairModel model = prepare_model(options, config, data, resume);
  fmt::print(stderr, "{} training and {} validation sources; {} source and {} target symbols\n",
             data.train.size(), data.valid.size(), model.source_vocabulary.size(),
             model.target_vocabulary.size());
  const TrainOutcome outcome = run_training(options, config, model, data, resume);
  if (outcome.interrupted) {
    fmt::print(stderr, "stopped at step {}; everything is saved; the same command goes on{}\n",
               outcome.steps, options.resume ? "" : " with --resume");
    throw CLI::RuntimeError(128 + stop_signal);
  }
  return {outcome, config.model.is_classifier()};
}

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand(
      "train", "Train a model on pairs of source and target, or of text and label");
  command->add_option(
      "--data", options->data,
      "folder with train.tsv and valid.tsv, or one TSV file: source TAB target or label");
  command->add_option("--valid", options->valid, "TSV file to validate on");
  command->add_option("--out", options->out, "folder to write the model to");
  command->add_option("--config", options->config, "TOML file with settings");
  command->add_option("--set", options->assignments, "key=value, overrides the file; repeatable")
      ->allow_extra_args(false);
  command->add_option("--source-units", options->source_units, "char, space or line");
  command->add_option("--target-units", options->target_units, "char, space or line");
  command->add_flag("--resume", options->resume, "continue from the last checkpoint, if any");
  command->add_flag("--dump-config", options->dump_config, "print what would run, and stop");
  command->add_flag("--json", options->json, "print the outcome as one JSON object");
  command->footer(
      "Examples:\n"
      "  attend train --data data --out model\n"
      "  attend train --data words.tsv --out model --set model.hidden=128 --set train.epochs=5\n"
      "  attend train --data reviews.tsv --out model --set model.type=classifier\n"
      "  attend train --data data --out model --resume\n"
      "  attend train --config recipes/cmudict.toml --dump-config\n"
      "A first SIGINT or SIGTERM saves and stops; the exit code is then 128 + the signal.");
  command->callback([options] { run_train(*options); });
}

}  // namespace attend
