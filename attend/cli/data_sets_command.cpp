#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/cli/commands.h"
#include "attend/cli/output_file.h"
#include "attend/datasets/integer_sets.h"

namespace attend {
namespace {

struct SetOptions {
  IntegerSets sets;
  std::string out;
  bool json = false;
};

void run_sets(const SetOptions& options) {
  write_integer_sets(options.out, options.sets);
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"path", options.out}, {"lines", options.sets.count}}.dump(
                           -1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{} sets and their maxima: {}\n", options.sets.count, options.out);
}

}  // namespace

void add_data_sets_command(CLI::App& data) {
  auto options = std::make_shared<SetOptions>();
  IntegerSets& sets = options->sets;
  auto* command = data.add_subcommand("sets", "Draw sets of integers, each with its maximum");
  add_output_file(*command, "--out", options->out,
                  "file to write, with lines of integers TAB maximum")
      ->required();
  command->add_option("--count", sets.count, "number of sets")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command
      ->add_option("--most", sets.maximum, "maximum number of integers per set; the minimum is 1")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--largest", sets.largest, "largest integer; the smallest is 1")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--seed", sets.seed, "random seed")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object: path, lines");
  command->footer(
      "Example:\n"
      "  attend data sets --out train.tsv --count 50000\n"
      "  attend data sets --out valid.tsv --count 2000 --seed 2\n"
      "  attend train --data train.tsv --valid valid.tsv --out model --recipe sets\n"
      "  echo 3 17 42 | attend predict model");
  command->callback([options] { run_sets(*options); });
}

}  // namespace attend
