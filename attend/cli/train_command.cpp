#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "attend/base/error.h"
#include "attend/base/memory.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/named_option.h"
#include "attend/cli/progress.h"
#include "attend/cli/recipes.h"
#include "attend/data/text_config.h"
#include "attend/files/json_line.h"
#include "attend/parallel/process_world.h"
#include "attend/runs/child_processes.h"
#include "attend/runs/training.h"

namespace attend {
namespace {

// Options that only the program needs.
struct CommandOptions {
  std::string recipe;
  bool dump_config = false, json = false;
};

struct ProcessOptions {
  int64_t count = 1;  // number of processes, including this one
  double timeout = 300;
};

// Trains in this process only, or together with others that this process or a launcher started.
Trained train_together(TrainOptions options, const ProcessOptions& processes) {
  // Must outlive the other processes: they would report that this process is gone before they are
  // ended.
  std::unique_ptr<Communicator> world;
  std::optional<ChildProcesses> others;
  if (processes.count > 1 && rank_of_environment().size == 1) {
    // Reports a wrong setting once, before other processes start.
    training_config(options);
    others.emplace(processes.count);
  }
  ProcessRank place = rank_of_environment();
  const bool is_child = end_with_starter();
  place.timeout = processes.timeout;
  place.meanwhile = [&others] {
    if (const std::string failed = others ? others->failure_so_far() : ""; !failed.empty())
      fail("{} before it met the others", failed);
  };
  world = connect(place);
  options.world = world.get();
  try {
    return train_with_progress(options);
  } catch (const Error&) {
    // Rank 0 has the same command and data, and reports the error.
    if (is_child) throw CLI::RuntimeError(2);
    throw;
  } catch (const CLI::Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    const std::string cause = others ? others->failure() : "";
    if (cause.empty()) throw;
    throw std::runtime_error(fmt::format("{}: {}", cause, error.what()));
  }
}

std::string shown_ending(const TrainOutcome& outcome, const Metric& metric) {
  const std::string setting = fmt::format("{} = {:g}", outcome.ended_by, outcome.limit);
  if (outcome.ended_by != "train.patience") return "ended by " + setting;
  return fmt::format("ended by {}: validations after the warm-up no longer improved {}", setting,
                     metric.title);
}

void print_outcome(const Trained& trained, const std::string& folder) {
  const auto& [outcome, metric] = trained;
  if (outcome.steps == outcome.steps_before)
    fmt::print(stderr,
               "nothing was left to train: {} steps before, {}; raise that to train further",
               outcome.steps, shown_ending(outcome, metric));
  else
    fmt::print(stderr, "trained {} steps in {}, {}", outcome.steps, clock_time(outcome.seconds),
               shown_ending(outcome, metric));
  // If the metric was changed, there may be no validation with it yet.
  if (std::isfinite(outcome.best_metric))
    fmt::print(stderr, "; best validation {} {}", metric.title, metric.shown(outcome.best_metric));
  fmt::print(stderr, "; model in {}\n", folder);
}

void run_train(const TrainOptions& options, const CommandOptions& command,
               const ProcessOptions& processes) {
  if (command.dump_config) {
    fmt::print("{}", training_config(options));
    return;
  }
  keep_large_memory();
  const Trained trained = train_together(options, processes);
  if (rank_of_environment().rank > 0) return;
  const auto& [outcome, metric] = trained;
  if (command.json)
    fmt::print("{}\n", json_line(nlohmann::json{{"model", options.out},
                                                {"steps", outcome.steps},
                                                {"steps_before", outcome.steps_before},
                                                {"ended_by", outcome.ended_by},
                                                {"skipped_steps", outcome.skipped},
                                                {"rollbacks", outcome.rollbacks},
                                                {"valid_" + metric.key, outcome.best_metric},
                                                {"seconds", outcome.seconds}}));
  else
    print_outcome(trained, options.out);
  if (outcome.left_out > 0) throw CLI::RuntimeError(1);
}

void add_training_data_options(CLI::App& command, TrainOptions& options) {
  command.add_option(
      "--data", options.data,
      "folder with train.tsv and valid.tsv, or one TSV file: source TAB target or label, or a CSV "
      "file with a header, or JSON Lines; for a language model also a text: a folder with "
      "train.txt "
      "and valid.txt, or any other file");
  command.add_option("--target", options.target,
                     "file of targets, if --data holds only one source per line");
  command.add_option("--valid", options.valid, "TSV file, or text, to validate on");
  command.add_option("--valid-target", options.valid_target, "file of targets for --valid");
  add_column_options(command, options.source_column, options.target_column);
}

void add_settings_options(CLI::App& command, TrainOptions& options, CommandOptions& own) {
  command.add_option("--config", options.config, "TOML file with settings");
  command
      .add_option("--recipe", own.recipe,
                  "name of a settings file in recipes/ or among the installed recipes")
      ->excludes("--config");
  command.add_option("--set", options.assignments, "key=value, overrides the file; repeatable")
      ->allow_extra_args(false);
  command.add_option(
      "--source-units", options.source_units,
      fmt::format("{}", fmt::join(TextConfig().source_units_setting().choices, ", ")));
  command.add_option("--target-units", options.target_units, "char, space, line, byte or bpe");
  command.add_option("--init", options.init,
                     "model folder to take fitting weights from, with its source tokens and, for a "
                     "model of the same type, its target tokens");
  add_named_option<InitVocabulary>(command, "--init-vocabulary", options.init_vocabulary,
                                   "tokens of the data that the model of --init lacks: extend adds "
                                   "them to its vocabularies, keep reads them as unknown")
      ->needs("--init");
}

void add_process_options(CLI::App& command, ProcessOptions& options) {
  command
      .add_option("--processes", options.count,
                  "number of training processes on this machine; torchrun, srun and mpirun start "
                  "their own (docs/scale.md)")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option(
          "--timeout", options.timeout,
          "seconds that a process waits for the others; choose more than a validation takes")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  auto own = std::make_shared<CommandOptions>();
  auto* command = app.add_subcommand(
      "train", "Train a model on pairs of source and target, pairs of text and label, or a text");
  add_training_data_options(*command, *options);
  command->add_option("--out", options->out, "folder to write the model to");
  add_settings_options(*command, *options, *own);
  add_placement_options(*command, options->placement);
  auto processes = std::make_shared<ProcessOptions>();
  add_process_options(*command, *processes);
  command->add_flag("--resume", options->resume,
                    "continue from the last checkpoint, if any (see below)");
  command->add_flag(
      "--strict", options->strict,
      "refuse texts that are too long for the model instead of cutting or dropping them");
  command->add_flag(
      "--skip-bad", options->skip_bad,
      "skip and report lines, images and sounds that cannot be read; the exit code is then 1");
  command->add_flag("--dump-config", own->dump_config,
                    "print the settings that would be used, and stop");
  command->add_flag(
      "--json", own->json,
      "print the outcome as one JSON object: model, steps, steps_before (of earlier "
      "runs), ended_by (the setting), skipped_steps, rollbacks, seconds, and the best "
      "of train.metric under valid_ and its key: valid_loss, valid_token_error_rate, ...");
  command->footer(
      "Examples:\n"
      "  attend train --data data --out model\n"
      "  attend train --data words.tsv --out model --set model.hidden=128 --set train.epochs=5\n"
      "  attend train --data reviews.tsv --out model --set model.type=classifier\n"
      "  attend train --data reviews.csv --source-column text --target-column stars --out model "
      "\\\n"
      "    --set model.type=classifier\n"
      "  attend train --data book.txt --out model --set model.type=lm\n"
      "  attend train --data train.en.gz --target train.de.gz --valid valid.en.gz \\\n"
      "    --valid-target valid.de.gz --out model --source-units space\n"
      "  attend train --data data --out model --resume\n"
      "  attend train --recipe cmudict --dump-config\n"
      "A first SIGINT, SIGTERM, SIGHUP (a closed terminal) or SIGUSR1 (Slurm's --signal) saves\n"
      "and stops; the exit code is then 128 + the signal.\n"
      "A killed training continues if its command is repeated with --resume. The result is\n"
      "bit-identical, except with train.minutes: rates then follow the clock. Training data\n"
      "and settings of the model must be as before.\n"
      "Settings train.* may change from there on, except for train.seed and\n"
      "train.shuffle_buffer. With another train.batch or train.batch_tokens, the rest of the\n"
      "epoch has batches of the new size. With another train.metric or other validation data,\n"
      "the search for the best weights starts again.");
  command->callback([options, own, processes] {
    if (!own->recipe.empty()) options->config = recipe_path(own->recipe);
    run_train(*options, *own, *processes);
  });
}

}  // namespace attend
