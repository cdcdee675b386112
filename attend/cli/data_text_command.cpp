#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/named_option.h"
#include "attend/cli/output_file.h"
#include "attend/data/text_codec.h"
#include "attend/files/json_line.h"
#include "attend/text/line_reader.h"
#include "attend/text/tokeniser.h"

namespace attend {
namespace {

struct LearnOptions {
  std::vector<std::string> files;
  std::string out;
  int64_t merges = 10000, minimum_count = 2;
  TextConfig text;
  bool json = false;
};

// Prints the changed line for each line of standard input.
void change_lines(const std::function<std::string(const std::string&)>& change) {
  LineReader reader(STDIN_FILENO, "standard input");
  std::vector<std::string> lines;
  while (reader.read(lines)) {
    int64_t number = reader.lines_read() - std::ssize(lines);
    for (const std::string& line : lines) {
      ++number;
      try {
        fmt::print("{}\n", change(line));
      } catch (const Error& error) {
        fail("standard input, line {}: {}", number, error.what());
      }
    }
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
  }
}

// Prepares texts and splits them into words.
TextCodec word_codec(TextConfig text) {
  text.source_units = "space";
  return make_codecs(text).source;
}

void run_learn(const LearnOptions& options) {
  const TextCodec codec = word_codec(options.text);
  WordCounts counts;
  for (const std::string& path : options.files) count_tokens(path, codec, counts);
  const auto codes = BytePairEncoding::learn(counts, options.merges, options.minimum_count);
  codes.save(options.out);
  if (options.json)
    fmt::print("{}\n", json_line(nlohmann::json{{"path", options.out},
                                                {"merges", codes.merges().size()},
                                                {"words", counts.size()}}));
  else
    fmt::print("{} merges learned from {} different words: {}\n", codes.merges().size(),
               counts.size(), options.out);
}

void add_word_options(CLI::App& command, TextConfig& text) {
  command.add_flag("--lowercase", text.lowercase, "as data.lowercase in training");
  command.add_flag("--tokenise", text.tokenise, "as data.tokenise in training");
  add_named_option<NormalForm>(command, "--normalise", text.normalise,
                               "as data.normalise: nfc, nfd, nfkc or none");
}

void add_learn_command(CLI::App& bpe) {
  auto options = std::make_shared<LearnOptions>();
  auto* command = bpe.add_subcommand("train", "Learn codes from texts");
  command
      ->add_option("files", options->files,
                   "texts, also packed by gzip or xz; several texts get joint codes")
      ->type_name("FILE")
      ->required();
  add_output_file(*command, "--out", options->out, "file to write the codes to")->required();
  command->add_option("--merges", options->merges, "number of merges")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--minimum-count", options->minimum_count, "minimum count of a pair to merge")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  add_word_options(*command, options->text);
  command->add_flag("--json", options->json,
                    "print one JSON object: path, merges, words (different ones)");
  command->footer(
      "Example:\n"
      "  attend data bpe train train.en.gz train.de.gz --merges 10000 --out codes\n"
      "  attend train --data train.en.gz --target train.de.gz --out model \\\n"
      "    --set data.bpe=codes --source-units bpe --target-units bpe");
  command->callback([options] { run_learn(*options); });
}

void add_apply_command(CLI::App& bpe) {
  auto path = std::make_shared<std::string>();
  auto text = std::make_shared<TextConfig>();
  auto* apply =
      bpe.add_subcommand("apply", "Write the lines of standard input as pieces, \"pul@@ ley\"");
  apply->add_option("--codes", *path, "file of codes, such as subword-nmt's")->required();
  add_word_options(*apply, *text);
  apply->footer(
      "Use the same options as for learning the codes.\n"
      "\n"
      "Example:\n"
      "  attend data bpe apply --codes codes < text > pieces");
  apply->callback([path, text] {
    const auto codes = BytePairEncoding::load(*path);
    const TextCodec codec = word_codec(*text);
    change_lines([&](const std::string& line) { return codes.apply(codec.prepared(line)); });
  });
}

void add_bpe_command(CLI::App& data) {
  auto* bpe = data.add_subcommand(
      "bpe", "Byte-pair encoding (Sennrich et al. 2016): splits words into frequent pieces");
  bpe->require_subcommand(1);
  bpe->footer(
      "Examples:\n"
      "  attend data bpe train train.en train.de --merges 10000 --out codes\n"
      "  attend data bpe apply --codes codes < text > pieces");
  add_learn_command(*bpe);
  add_apply_command(*bpe);
  auto* undo = bpe->add_subcommand("undo", "Join the pieces of standard input into words");
  undo->footer("Example:\n  attend data bpe undo < pieces > text");
  undo->callback([] { change_lines(BytePairEncoding::undo); });
}

void add_tokenise_command(CLI::App& data) {
  auto undo = std::make_shared<bool>(false);
  auto* command = data.add_subcommand(
      "tokenise", "Set words and punctuation of standard input apart, \"Stop ￭!\"");
  command->add_flag("--undo", *undo, "join them again");
  command->footer(
      "U+FFED marks a side without a space, so that --undo restores the text except for\n"
      "its white space.\n"
      "\n"
      "Example:\n"
      "  echo \"Don't stop!\" | attend data tokenise | attend data tokenise --undo");
  command->callback([undo] {
    change_lines(
        [&](const std::string& line) { return *undo ? undo_tokenise(line) : tokenise(line); });
  });
}

}  // namespace

void add_data_text_commands(CLI::App& data) {
  add_bpe_command(data);
  add_tokenise_command(data);
}

}  // namespace attend
