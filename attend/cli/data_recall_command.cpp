#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/cli/commands.h"
#include "attend/cli/output_file.h"
#include "attend/datasets/recall.h"
#include "attend/files/json_line.h"

namespace attend {
namespace {

struct RecallOptions {
  Recall recall;
  std::string out;
  bool json = false;
};

void run_recall(const RecallOptions& options) {
  write_recall(options.out, options.recall);
  if (options.json)
    fmt::print("{}\n",
               json_line(nlohmann::json{{"path", options.out}, {"lines", options.recall.count}}));
  else
    fmt::print("{} lines of up to {} pairs: {}\n", options.recall.count, options.recall.pairs,
               options.out);
}

void add_size(CLI::App& command, const char* name, int64_t& value, const char* help,
              int64_t minimum, int64_t maximum) {
  command.add_option(name, value, help)->check(CLI::Range(minimum, maximum))->capture_default_str();
}

}  // namespace

void add_data_recall_command(CLI::App& data) {
  auto options = std::make_shared<RecallOptions>();
  Recall& recall = options->recall;
  auto* command =
      data.add_subcommand("recall", "Draw associative recall: pairs of key and value, then a key");
  add_output_file(*command, "--out", options->out,
                  "file to write, with lines of pairs and a query TAB value")
      ->required();
  add_size(*command, "--count", recall.count, "number of lines", 1, 10'000'000);
  add_size(*command, "--pairs", recall.pairs, "maximum number of pairs per line", 1, 100'000);
  add_size(*command, "--least", recall.least_pairs,
           "minimum number of pairs per line, drawn up to the maximum; 0: the maximum", 0, 100'000);
  add_size(*command, "--queries", recall.queries,
           "number of queries per line; all after the first follow its value", 1, 100'000);
  add_size(*command, "--vocabulary", recall.vocabulary,
           "number of different keys, and of values; at least --pairs", 1, 1'000'000);
  add_size(*command, "--seed", recall.seed, "random seed", 0, 1'000'000'000);
  command->add_flag("--json", options->json, "print one JSON object: path, lines");
  command->footer(
      "The keys of a line are different; values and queries are uniform.\n"
      "\n"
      "Example:\n"
      "  attend data recall --out train.tsv --count 40000 --least 2 --queries 64\n"
      "  attend data recall --out valid.tsv --count 200 --queries 64 --seed 2\n"
      "  attend data recall --out test.tsv --count 2000 --seed 3\n"
      "  attend train --data train.tsv --valid valid.tsv --out model --recipe recall\n"
      "  attend evaluate model --data test.tsv --maximum-length 1");
  command->callback([options] { run_recall(*options); });
}

}  // namespace attend
