#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/models/pair_model.h"
#include "attend/runs/out_folder.h"
#include "attend/train/kept_weights.h"

namespace attend {
namespace {

struct AverageOptions {
  std::string model, out;
  int64_t last = 10;
  bool json = false;
};

// This file is written first and config.toml last: a folder with the first alone holds an average
// that did not come to its end.
constexpr const char* mark = "average.toml";

void check_unused(const std::string& folder) {
  const std::set<std::string> names = names_in(folder);
  const bool unfinished = names.contains(mark) && !names.contains("config.toml");
  if (!names.empty() && !unfinished)
    fail("--out {}: is there already; choose a new folder", folder);
}

void run_average(const AverageOptions& options) {
  const PairModel model = load_description(options.model);
  std::vector<int64_t> steps = kept_steps(options.model);
  const auto count = static_cast<int64_t>(steps.size());
  if (count > options.last) steps.erase(steps.begin(), steps.end() - options.last);
  if (steps.empty())
    fail("{}: keeps no weights to average; train with --set train.keep_checkpoints={}",
         options.model, options.last);
  const FolderLock lock = take_out_folder(options.out);
  check_unused(options.out);
  write_file(fmt::format("{}/{}", options.out, mark),
             fmt::format("# The mean of the weights that a training had after\nsteps = [{}]\n",
                         fmt::join(steps, ", ")));
  average_weights(options.model, steps, options.out + "/weights.safetensors");
  save_description(model, options.out);
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"model", options.out}, {"steps", steps}}.dump());
  else
    fmt::print(stderr, "the mean of the weights after steps {}; model in {}\n",
               fmt::join(steps, ", "), options.out);
}

}  // namespace

void add_average_command(CLI::App& app) {
  auto options = std::make_shared<AverageOptions>();
  auto* command = app.add_subcommand(
      "average", "Make a model of the mean of the last weights that training kept");
  command->add_option("model", options->model, "model folder")->required();
  command->add_option("--last", options->last, "how many, of those that are there")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--out", options->out, "folder of the new model")->required();
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      "Example:\n"
      "  attend train --data data --out model --set train.keep_checkpoints=10\n"
      "  attend average model --last 10 --out averaged\n"
      "JSON keys: model, steps.");
  command->callback([options] { run_average(*options); });
}

}  // namespace attend
