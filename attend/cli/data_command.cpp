#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/datasets/cmudict.h"
#include "attend/files/json_line.h"

namespace attend {
namespace {

struct CmudictOptions {
  std::string dictionary;
  std::string folder;
  bool json = false;
};

struct PartReport {
  const char* name;
  int64_t words;
  int64_t pairs;
  std::string path;
};

void print_json(const CmudictOptions& options, const std::vector<PartReport>& parts) {
  nlohmann::ordered_json report;
  report["dictionary"] = options.dictionary;
  for (const PartReport& part : parts) {
    const std::string name = part.name;
    report[name + "_path"] = part.path;
    report[name + "_words"] = part.words;
    report[name + "_pairs"] = part.pairs;
  }
  fmt::print("{}\n", json_line(report));
}

void run_cmudict(CmudictOptions options) {
  if (options.dictionary.empty()) {
    options.dictionary = debian_cmudict;
    if (!std::filesystem::exists(options.dictionary)) {
      fail(
          "{}: no such file; install the package pocketsphinx-en-us, or give the path of a "
          "dictionary",
          options.dictionary);
    }
  }
  const SplitCounts counts = split_cmudict(options.dictionary, options.folder);
  const auto path = [&](const char* name) {
    return (std::filesystem::path(options.folder) / name).string();
  };
  const std::vector<PartReport> parts = {
      {"train", counts.train_words, counts.train_pairs, path("train.tsv")},
      {"valid", counts.valid_words, counts.valid_pairs, path("valid.tsv")},
      {"test", counts.test_words, counts.test_pairs, path("test.tsv")}};
  if (options.json) return print_json(options, parts);
  for (const PartReport& part : parts) {
    fmt::print("{:<6}{:>8} words {:>8} pronunciations  {}\n", part.name, part.words, part.pairs,
               part.path);
  }
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Prepare data to train on");
  data->require_subcommand(1);
  data->footer(
      "Examples:\n"
      "  attend data check data\n"
      "  attend data split pairs.tsv --out data\n"
      "  attend data bpe train text --out codes");
  add_data_text_commands(*data);
  add_data_check_command(*data);
  add_data_media_commands(*data);
  add_data_interactions_command(*data);
  add_data_contacts_command(*data);
  add_data_sets_command(*data);
  add_data_recall_command(*data);
  add_data_split_command(*data);
  CLI::App* cmudict = data->add_subcommand(
      "cmudict", "Split a pronouncing dictionary into train.tsv, valid.tsv and test.tsv");
  auto options = std::make_shared<CmudictOptions>();
  cmudict
      ->add_option(
          "dictionary", options->dictionary,
          "Dictionary in the CMU format; default: the one of the Debian package pocketsphinx-en-us")
      ->type_name("DICTIONARY");
  cmudict->add_option("--out", options->folder, "Folder to write into, created if missing")
      ->type_name("DIR")
      ->required();
  cmudict->add_flag("--json", options->json,
                    "Print one JSON object: dictionary, and for each of train, valid and test "
                    "<part>_path, <part>_words, <part>_pairs");
  cmudict->footer(
      "A hash of a word's spelling chooses its part: 90 % train, 5 % valid, 5 % test. All\n"
      "pronunciations of a word are in one part. Stress is dropped. With\n"
      "--set data.references=merged, training and evaluation accept any of them as correct.\n"
      "\n"
      "Example:\n"
      "  attend data cmudict --out data\n"
      "  attend data cmudict my.dict --out data --json");
  cmudict->callback([options] { run_cmudict(*options); });
}

}  // namespace attend
