#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/files/json_line.h"
#include "attend/runs/average.h"

namespace attend {
namespace {

struct AverageOptions {
  std::string model, out;
  int64_t last = 10;
  bool json = false;
};

void run_average(const AverageOptions& options) {
  const std::vector<int64_t> steps = average_model(options.model, options.out, options.last);
  if (options.json)
    fmt::print("{}\n", json_line(nlohmann::json{{"model", options.out}, {"steps", steps}}));
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
  command
      ->add_option("--last", options->last,
                   "number of saved weights to average, the last ones; fewer if fewer exist")
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
