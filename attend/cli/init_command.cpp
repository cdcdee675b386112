#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/find_row.h"
#include "attend/cli/commands.h"
#include "attend/cli/output_file.h"
#include "attend/runs/training.h"

namespace attend {
namespace {

// Task of a configuration: its differences from the defaults.
struct Task {
  std::string name, meaning, data;
  std::vector<std::string> assignments;
};

const std::vector<Task>& task_table() {
  static const std::vector<Task> table = {
      {"translation",
       "Sentences to sentences, with a Transformer",
       "--data train.en --target train.de --valid valid.en --valid-target valid.de",
       {"model.type=transformer", "data.source_units=space", "data.target_units=space",
        "train.batch_tokens=4096", "train.schedule=inverse_sqrt", "train.warmup_steps=4000",
        "train.metric=bleu", "train.keep_checkpoints=10"}},
      {"pronunciation",
       "Words to their sounds, with a recurrent network with attention",
       "--data data",
       {"data.references=merged", "model.encoder_layers=2"}},
      {"classification", "Texts to labels", "--data reviews.tsv", {"model.type=classifier"}},
      {"tagging",
       "A label for each token, from files in columns",
       "--data train.conll --valid valid.conll",
       {"model.type=tagger"}},
      {"regression",
       "Texts to numbers",
       "--data measured.tsv",
       {"model.type=classifier", "data.target=number"}},
      {"labels",
       "Texts to any number of labels each, written as a|b",
       "--data topics.csv",
       {"model.type=classifier", "data.target=labels"}},
      {"sets",
       "Sets of numbers or of vectors to numbers, whatever their order",
       "--data sets.tsv",
       {"model.type=set", "data.target=number"}},
      {"molecules",
       "Molecules in SMILES to numbers, by attention along their bonds",
       "--data measured.tsv",
       {"model.type=classifier", "data.source_units=molecule", "data.target=number",
        "model.layers=3", "model.bias=none", "model.pooling=sum"}},
      {"language_model",
       "The continuation of a text, character by character",
       "--data book.txt",
       {"model.type=lm", "train.schedule=cosine", "train.weight_decay=0.1", "train.beta2=0.99"}},
      {"recommendation",
       "The next item of a user, ranked among all items",
       "--data interactions.tsv",
       {"model.type=recommender", "train.patience=10"}},
      {"graph",
       "A class for each node of a graph, such as papers linked by citations",
       "--data FOLDER_WITH_NODES_AND_EDGES",
       {"model.type=graph"}},
      {"images",
       "Images to labels, with a Vision Transformer on top of convolutions",
       "--data data",
       {"model.type=vit", "model.convolutions=2", "model.channels=32"}},
      {"speech",
       "Recordings to their text, letter by letter",
       "--data data",
       {"data.source_units=sound", "data.target_units=char", "model.mechanism=location_sensitive"}},
  };
  return table;
}

void run_init(const std::string& name, const std::string& out) {
  const Task& task = find_row(task_table(), "task", name);
  TrainOptions options;
  options.assignments = task.assignments;
  const std::string shown_path = out.empty() ? "FILE" : out;
  const std::string document = fmt::format(
      "# {}:\n"
      "#   attend train {} --out model --config {}\n"
      "# Every key is here with its default for this task; unchanged keys may be removed.\n"
      "{}",
      task.meaning, task.data, shown_path, training_config(options));
  if (out.empty()) {
    fmt::print("{}", document);
    return;
  }
  if (std::filesystem::exists(out)) fail("--out {}: exists already; choose a new name", out);
  write_file(out, document);
}

}  // namespace

void add_init_command(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  auto* command = app.add_subcommand("init", "Write a commented configuration for a task");
  std::string tasks;
  for (const Task& task : task_table()) tasks += (tasks.empty() ? "" : ", ") + task.name;
  command->add_option("task", *name, tasks)->required();
  add_output_file(*command, "--out", *out, "file to write; default: standard output");
  command->footer("Example:\n  attend init translation --out translation.toml");
  command->callback([name, out] { run_init(*name, *out); });
}

}  // namespace attend
