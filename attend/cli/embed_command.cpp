#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/named_option.h"
#include "attend/data/json_line.h"
#include "attend/data/line_reader.h"

namespace attend {
namespace {

struct EmbedOptions {
  std::string folder;
  ModelOptions model;
  bool json = false;
  bool tokens = false;
};

void print_embedding(const EmbedOptions& options, const std::string& source,
                     const Embedding& embedding) {
  if (!options.json) {
    fmt::print("{}\n", fmt::join(embedding.whole, " "));
    return;
  }
  nlohmann::ordered_json line = {{"source", source}, {"vector", embedding.whole}};
  if (options.tokens) {
    line["tokens"] = embedding.tokens;
    auto& rows = line["vectors"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < embedding.tokens.size(); ++i) {
      const auto begin = embedding.vectors.begin() + static_cast<int64_t>(i) * embedding.depth;
      rows.push_back(std::vector<float>(begin, begin + embedding.depth));
    }
  }
  fmt::print("{}\n", json_line(line));
}

void run_embed(const EmbedOptions& options) {
  if (options.tokens && !options.json) fail("--tokens are printed with --json alone; add it");
  const Model model(options.folder, options.model);
  LineReader reader(STDIN_FILENO, "standard input");
  std::vector<std::string> lines;
  while (reader.read(lines)) {
    const int64_t first = reader.lines_read() - std::ssize(lines) + 1;
    try {
      const std::vector<Embedding> embeddings = model.embed(lines);
      for (size_t i = 0; i < lines.size(); ++i) print_embedding(options, lines[i], embeddings[i]);
    } catch (const SourceError& error) {
      fail("standard input, line {}: {}", first + static_cast<int64_t>(error.index()),
           error.reason());
    }
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
  }
}

}  // namespace

void add_embed_command(CLI::App& app) {
  auto options = std::make_shared<EmbedOptions>();
  auto* command = app.add_subcommand("embed", "Print a vector for each line of standard input");
  command->add_option("model", options->folder, "model folder")->required();
  add_placement_options(*command, options->model.placement);
  add_named_option<WeightType>(
      *command, "--weights", options->model.weights,
      "what vectors are computed with: float32, or bfloat16 or int8, faster and a little off");
  command->add_option("--threads", options->model.threads, "that compute, else one per core")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--strict", options->model.strict,
                    "refuse a line that is longer than the model reads; otherwise it is cut");
  command->add_flag("--json", options->json, "one JSON object per line");
  command->add_flag("--tokens", options->tokens, "with --json: the vectors of the tokens too");
  command->footer(
      "Examples:\n"
      "  attend embed model < sentences.txt > vectors.txt\n"
      "Output: the numbers of the vector, with blanks between; nothing for an empty line; with "
      "--json,\n"
      "  {\"source\", \"vector\": [numbers]}, with --tokens also tokens and vectors, one of each "
      "token.\n"
      "The vector is the mean of those of the tokens, or what an imported sentence encoder makes "
      "of "
      "them.");
  command->callback([options] { run_embed(*options); });
}

}  // namespace attend
