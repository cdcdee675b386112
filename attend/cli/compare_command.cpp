#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/progress.h"
#include "attend/cli/setting_options.h"
#include "attend/metrics/metric.h"
#include "attend/runs/comparison.h"
#include "attend/runs/out_folder.h"
#include "attend/runs/training.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  TrainOptions train;  // common to all runs
  std::string test;
  std::vector<std::string> mechanisms = {
      "none",    "bahdanau", "luong_dot", "luong_general", "luong_location",
      "local_m", "local_p",  "hard",      "monotonic",     "location_sensitive"};
  std::vector<std::string> others;  // NAME=CONFIG
  std::string metric = "token_error";
  int64_t seeds = 3;
  ModelOptions model = {.threads = 2};
  SearchOptions search;
  bool json = false;
};

// Row of the comparison: a mechanism in the common model, or another model.
struct Choice {
  std::string name;
  std::string config = {};  // config of another model
};

std::vector<Choice> choices_of(const CompareOptions& options) {
  std::vector<Choice> choices;
  choices.reserve(options.mechanisms.size() + options.others.size());
  for (const std::string& mechanism : options.mechanisms) choices.push_back({mechanism});
  for (const std::string& other : options.others) {
    const size_t equals = other.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == other.size() ||
        other.find('/') < equals)
      fail(
          "--with {}: a name and a file are wanted, as in --with transformer=recipes/multi30k.toml",
          in_quotes(other));
    choices.push_back({other.substr(0, equals), other.substr(equals + 1)});
  }
  std::set<std::string> seen;
  for (const Choice& choice : choices)
    if (!seen.insert(choice.name).second)
      fail("--mechanisms, --with: {} is there twice", in_quotes(choice.name));
  return choices;
}

// Name for the model without attention.
constexpr std::string_view no_mechanism = "none";

std::string chosen(const std::string& mechanism) {
  return mechanism == no_mechanism ? "model.score=none" : "model.mechanism=" + mechanism;
}

TrainOptions options_of_run(const CompareOptions& options, const Choice& choice, int64_t seed) {
  TrainOptions run = options.train;
  run.out = fmt::format("{}/{}-{}", options.train.out, choice.name, seed);
  run.resume = true;
  if (!choice.config.empty()) run.config = choice.config;
  if (choice.config.empty()) run.assignments.push_back(chosen(choice.name));
  run.assignments.push_back(fmt::format("train.seed={}", seed));
  return run;
}

// Error if the rows with mechanisms would all be the same model.
void check_mechanism(const CompareOptions& options, const std::string& name) {
  ModelConfig model = training_model(options.train);
  if (name != no_mechanism) {
    const std::string reason = model.chosen().unused_mechanism_reason();
    if (reason.empty()) return;
    fail("--mechanisms {}: {}, so model.type {} uses no mechanism; set another value", name, reason,
         model.type);
  }
  for (const Setting& setting : model.settings())
    if (setting.key == "model.score" && !std::ranges::count(setting.choices, no_mechanism))
      fail("--mechanisms none: model.type {} always has attention; leave out none", model.type);
}

// Checks every row before the first training, so that a spelling mistake is found at once.
void check_rows(const CompareOptions& options, const std::vector<Choice>& choices) {
  for (const Choice& choice : choices) {
    if (choice.config.empty()) check_mechanism(options, choice.name);
    TrainOptions run = options_of_run(options, choice, 1);
    // Existing runs began with these settings, or compare.toml differs.
    run.resume = false;
    training_config(run);
  }
}

// Runs with other settings would not be comparable; compare.toml records the common ones. The lock
// keeps other processes from writing into the folder.
FolderLock claim_folder(const CompareOptions& options, const std::vector<Choice>& choices) {
  const std::string& folder = options.train.out;
  const std::string path = folder + "/compare.toml";
  std::string shared =
      fmt::format("# data: {}\n{}", options.train.data, training_config(options.train));
  for (const Choice& choice : choices) {
    if (choice.config.empty()) continue;
    TrainOptions own = options.train;
    own.config = choice.config;
    shared += fmt::format("\n# {}\n{}", choice.name, training_config(own));
  }
  FolderLock lock = take_out_folder(folder);
  if (fs::exists(path)) {
    if (read_file(path) != shared)
      fail("--out {}: holds runs with other settings or data (compare.toml); choose a new folder",
           folder);
  } else if (!names_in(folder).empty()) {
    fail("--out {}: holds other files; choose a new folder", folder);
  }
  write_file(path, shared);
  return lock;
}

Evaluation test(const CompareOptions& options, const std::string& folder,
                const std::vector<Example>& examples, MetricOptions& measured) {
  const Model model(folder, options.model);
  measured = metric_options(model);
  SearchOptions search = options.search;
  search.no_answer = model.search_options().no_answer;
  CountPrinter printer("decoded");
  return evaluate(model, examples, search,
                  [&](int64_t done, int64_t total) { printer.show(done, total); });
}

std::vector<ComparedRow> run_all(const CompareOptions& options, const std::vector<Choice>& choices,
                                 const std::vector<Example>& examples) {
  std::vector<ComparedRow> rows;
  rows.reserve(choices.size());
  for (const Choice& choice : choices) rows.push_back({choice.name});
  const int64_t total = options.seeds * static_cast<int64_t>(rows.size());
  int64_t done = 0;
  const auto start = std::chrono::steady_clock::now();
  // Seeds form the outer loop: an interrupted comparison then covers every mechanism.
  for (int64_t seed = 1; seed <= options.seeds; ++seed) {
    for (size_t i = 0; i < rows.size(); ++i) {
      ComparedRow& row = rows[i];
      const TrainOptions run = options_of_run(options, choices[i], seed);
      const double elapsed =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      fmt::print(stderr, "[{}/{}] {}, seed {}{}\n", done + 1, total, row.name, seed,
                 done == 0 ? ""
                           : fmt::format(" | all done in about {}",
                                         clock_time(elapsed / static_cast<double>(done) *
                                                    static_cast<double>(total - done))));
      const TrainOutcome outcome = train_with_progress(run).outcome;
      row.minutes += outcome.seconds / 60 / static_cast<double>(options.seeds);
      row.runs.push_back(test(options, run.out, examples, row.options));
      ++done;
    }
  }
  return rows;
}

void run_compare(CompareOptions options) {
  if (!fs::is_directory(options.train.data))
    fail("--data {}: is not a folder; give a folder with train.tsv, valid.tsv and test.tsv",
         options.train.data);
  if (options.test.empty()) options.test = options.train.data;
  const std::vector<Choice> choices = choices_of(options);
  check_rows(options, choices);
  const FolderLock lock = claim_folder(options, choices);
  const std::vector<Example> examples =
      read_test(options_of_run(options, choices[0], 1), options.test, print_remark);
  const std::vector<ComparedRow> rows = run_all(options, choices, examples);
  const Metric& metric = metric_named(options.metric);
  const std::string& folder = options.train.out;
  const std::string table = comparison_table(rows, metric);
  const std::string json = comparison_json(rows, metric).dump();
  write_file(folder + "/comparison.md", table);
  write_file(folder + "/comparison.json", json + "\n");
  write_file(folder + "/comparison.svg", comparison_chart(rows, metric));
  fmt::print("{}\n", options.json ? json : table);
  const auto [count, sources, references] = count_examples(examples);
  fmt::print(stderr, "measured on {} examples of {} sources, with {} references\n", count, sources,
             references);
  fmt::print(stderr, "table, figures and plot: {0}/comparison.md, .json, .svg\n", folder);
}

}  // namespace

void add_compare_command(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  auto* command = app.add_subcommand(
      "compare", "Train the same model with several mechanisms and compare them");
  command
      ->add_option("--data", options->train.data, "folder with train.tsv, valid.tsv and test.tsv")
      ->required();
  command->add_option("--out", options->train.out, "folder for the models and the comparison")
      ->required();
  command
      ->add_option("--mechanisms", options->mechanisms,
                   "mechanisms to compare, as attend mechanisms lists them; none: no attention")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--with", options->others,
                   "NAME=CONFIG: one more row, for the model in this TOML file; repeatable")
      ->allow_extra_args(false);
  command
      ->add_option("--metric", options->metric, "metric to compare, overall and by source length")
      ->check(CLI::IsMember(metric_names(&Metric::of_texts)))
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "models per mechanism")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--test", options->test,
                      "TSV file to measure on; default: test.tsv of the data");
  command->add_option("--config", options->train.config, "TOML file with settings for all models");
  command->add_option("--set", options->train.assignments, "key=value for all models; repeatable")
      ->allow_extra_args(false);
  const Setting beam = setting_of(options->search.settings(), "beam");
  add_setting_option(*command, beam, beam.help)->capture_default_str();
  command->add_option("--threads", options->model.threads, "sentences decoded in parallel")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object instead of the table");
  command->footer(
      "Examples:\n"
      "  attend compare --config recipes/compare.toml --data data --out runs\n"
      "  attend compare --data data --out runs --mechanisms none,bahdanau --seeds 1\n"
      "  attend compare --data data --out runs --config recipes/multi30k_recurrent.toml \\\n"
      "    --mechanisms none,bahdanau --with transformer=recipes/multi30k.toml --metric bleu\n"
      "Every mechanism gets the same steps (train.epochs), data and sizes.\n"
      "The same command continues an interrupted comparison. OUT/comparison.md holds the table,\n"
      "comparison.svg the plot of errors against source length, comparison.json, which --json\n"
      "prints: mechanisms: [{mechanism, token_error_rates, sequence_error_rates (one per seed),\n"
      "or another metric, minutes, by_length: [{first, last, examples, and the same\n"
      "figures}]}].");
  command->callback([options] { run_compare(*options); });
}

}  // namespace attend
