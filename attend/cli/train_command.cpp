#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/cli/progress.h"
#include "attend/cli/recipes.h"
#include "attend/runs/training.h"

namespace attend {
namespace {

void run_train(const TrainOptions& options) {
  if (options.dump_config && !options.resume) {
    fmt::print("{}", training_config(options));
    return;
  }
  const auto [outcome, metric] = train_with_progress(options);
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"model", options.out},
                                      {"steps", outcome.steps},
                                      {"skipped_steps", outcome.skipped},
                                      {"rollbacks", outcome.rollbacks},
                                      {metric.key(), outcome.best_metric},
                                      {"seconds", outcome.seconds}}
                           .dump());
    return;
  }
  fmt::print(stderr, "trained {} steps in {}; best validation {} {}; model in {}\n", outcome.steps,
             clock_time(outcome.seconds), metric.words, metric.shown(outcome.best_metric),
             options.out);
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand(
      "train", "Train a model on pairs of source and target or of text and label, or on a text");
  command->add_option(
      "--data", options->data,
      "folder with train.tsv and valid.tsv, or one TSV file: source TAB target or label; of a "
      "language model also a text: a folder with train.txt and valid.txt, or any other file");
  command->add_option("--target", options->target,
                      "the file of targets, where --data holds a source a line alone");
  command->add_option("--valid", options->valid, "TSV file, or text, to validate on");
  command->add_option("--valid-target", options->valid_target, "the same for --valid");
  command->add_option("--out", options->out, "folder to write the model to");
  command->add_option("--config", options->config, "TOML file with settings");
  command
      ->add_option("--recipe", options->recipe,
                   "such a file by its name, from recipes/ or from those installed")
      ->excludes("--config");
  command->add_option("--set", options->assignments, "key=value, overrides the file; repeatable")
      ->allow_extra_args(false);
  command->add_option("--source-units", options->source_units,
                      "char, space, line, byte, bpe, image or sound");
  command->add_option("--target-units", options->target_units, "char, space, line, byte or bpe");
  command->add_option("--init", options->init,
                      "model folder whose source vocabulary is taken, and the weights that fit");
  command->add_option("--device", options->device, "where the model computes: cpu, cuda or cuda:1")
      ->capture_default_str();
  command->add_flag("--resume", options->resume,
                    "continue from the last checkpoint, if any (see below)");
  command->add_flag("--strict", options->strict,
                    "refuse texts that are longer than the model reads or answers");
  command->add_flag("--dump-config", options->dump_config, "print what would run, and stop");
  command->add_flag("--json", options->json, "print the outcome as one JSON object");
  command->footer(
      "Examples:\n"
      "  attend train --data data --out model\n"
      "  attend train --data words.tsv --out model --set model.hidden=128 --set train.epochs=5\n"
      "  attend train --data reviews.tsv --out model --set model.type=classifier\n"
      "  attend train --data book.txt --out model --set model.type=lm\n"
      "  attend train --data train.en.gz --target train.de.gz --valid valid.en.gz \\\n"
      "    --valid-target valid.de.gz --out model --source-units space\n"
      "  attend train --data data --out model --resume\n"
      "  attend train --recipe cmudict --dump-config\n"
      "A first SIGINT or SIGTERM saves and stops; the exit code is then 128 + the signal.\n"
      "A training that was killed at any moment goes on when its command comes with --resume. It\n"
      "ends with the same bits, except with train.minutes, whose rates follow the clock. Data and\n"
      "settings of the model must be as before. Settings train.* may change and hold from there\n"
      "on, except for train.seed and train.shuffle_buffer. With another train.batch or\n"
      "train.batch_tokens, what is left of the epoch comes in batches of the new size.");
  command->callback([options] {
    if (!options->recipe.empty()) options->config = recipe_path(options->recipe);
    run_train(*options);
  });
}

}  // namespace attend
