#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/cli/commands.h"
#include "attend/cli/output_file.h"
#include "attend/datasets/planted_interactions.h"
#include "attend/files/json_line.h"

namespace attend {
namespace {

struct InteractionsOptions {
  PlantedInteractions planted;
  std::string out;
  bool json = false;
};

void run_interactions(const InteractionsOptions& options) {
  const PlantedSummary summary = write_planted(options.out, options.planted);
  if (options.json) {
    fmt::print("{}\n", json_line(nlohmann::json{{"path", options.out},
                                                {"lines", summary.lines},
                                                {"best_hit@10", options.planted.best_hit()},
                                                {"last_hit@10", summary.last_hit}}));
    return;
  }
  fmt::print("{} lines of user, item and time: {}\n", summary.lines, options.out);
  fmt::print("best possible hit@10 {:.4f}; share of last items among the ten followers {:.4f}\n",
             options.planted.best_hit(), summary.last_hit);
}

}  // namespace

void add_data_interactions_command(CLI::App& data) {
  auto options = std::make_shared<InteractionsOptions>();
  PlantedInteractions& planted = options->planted;
  auto* command = data.add_subcommand(
      "interactions",
      "Write interactions drawn from a Markov chain with known best possible hit@10");
  add_output_file(*command, "--out", options->out,
                  "file to write, with lines of user TAB item TAB time")
      ->required();
  command->add_option("--users", planted.users, "number of users")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  command->add_option("--items", planted.items, "number of different items")
      ->check(CLI::Range(20, 900'000))
      ->capture_default_str();
  command->add_option("--length", planted.length, "number of items per user")
      ->check(CLI::Range(3, 10'000))
      ->capture_default_str();
  command->add_option("--seed", planted.seed, "random seed")->capture_default_str();
  command->add_flag("--json", options->json,
                    "print one JSON object: path, lines, best_hit@10, last_hit@10");
  command->footer(
      "Each of ten items follows an item with probability 0.09; otherwise any item follows.\n"
      "\n"
      "Example:\n"
      "  attend data interactions --out planted.tsv\n"
      "  attend train --data planted.tsv --out model --set model.type=recommender\n"
      "  attend evaluate model --data planted.tsv --metric hit@10 --keep-seen");
  command->callback([options] { run_interactions(*options); });
}

}  // namespace attend
