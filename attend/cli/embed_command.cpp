#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/named_option.h"
#include "attend/cli/source_lines.h"
#include "attend/files/json_line.h"
#include "attend/inference/embedding_check.h"

namespace attend {
namespace {

struct EmbedOptions {
  std::string folder;
  ModelOptions model;
  bool json = false;
  bool tokens = false;
  bool check = false;
};

void print_embedding(const EmbedOptions& options, const Model& model, const std::string& source,
                     const Embedding& embedding) {
  if (!options.json) {
    fmt::print("{}\n", fmt::join(embedding.whole, " "));
    return;
  }
  nlohmann::ordered_json line = {{"source", source}, {"vector", embedding.whole}};
  if (!embedding.error.empty()) line["error"] = embedding.error;
  if (options.tokens) {
    line["tokens"] = model.source_texts(embedding.tokens);
    auto& rows = line["vectors"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < embedding.tokens.size(); ++i) {
      const auto begin = embedding.vectors.begin() + static_cast<int64_t>(i) * embedding.depth;
      rows.push_back(std::vector<float>(begin, begin + embedding.depth));
    }
  }
  fmt::print("{}\n", json_line(line));
}

// Texts of standard input.
std::vector<std::string> all_texts() {
  SourceLines lines(/*skip_bad=*/false);
  std::vector<std::string> texts, portion;
  while (lines.read(portion, {})) texts.insert(texts.end(), portion.begin(), portion.end());
  return texts;
}

void run_check(const EmbedOptions& options) {
  if (options.json || options.tokens || options.model.skip_bad)
    fail("--check prints three counts; leave --json, --tokens and --skip-bad out");
  const Model model(options.folder, options.model);
  ModelOptions more = options.model;
  more.threads = model.threads() == 1 ? 2 : 1;
  const Model other(options.folder, more);
  const EmbeddingCheck check = check_embeddings(model, other, all_texts());
  fmt::print(
      "{} texts with a vector. Vectors with other bits than among the other texts:\n"
      "{} if a text is by itself\n{} in reverse order\n{} if the number of threads is {} instead "
      "of {}\n",
      check.texts, check.by_itself, check.reversed, check.threads, other.threads(),
      model.threads());
  if (!check.agrees()) throw CLI::RuntimeError(1);
}

void run_embed(const EmbedOptions& options) {
  if (options.check) return run_check(options);
  if (options.tokens && !options.json) fail("--tokens needs --json; add it");
  // Results before a bad line are printed before its error ends the command.
  ModelOptions with_errors = options.model;
  with_errors.skip_bad = true;
  const Model model(options.folder, with_errors);
  SourceLines lines(options.model.skip_bad);
  UnknownCount unknown;
  std::vector<std::string> texts;
  const auto answer_bad = [&](const std::string& error) {
    Embedding none;
    none.error = error;
    print_embedding(options, model, "", none);
  };
  while (lines.read(texts, answer_bad)) {
    const std::vector<Embedding> embeddings = model.embed(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string& error = embeddings[i].error;
      if (!error.empty() && !options.model.skip_bad)
        fail("standard input, line {}: {}", lines.number(i), error);
      if (embeddings[i].truncated) lines.tell_truncated(i, model);
      if (error.empty())
        unknown.add(model, texts[i], lines.number(i));
      else
        lines.tell_bad(i, error);
      print_embedding(options, model, texts[i], embeddings[i]);
    }
    flush_output();
  }
  unknown.tell("");
  lines.end("vectors");
}

}  // namespace

void add_embed_command(CLI::App& app) {
  auto options = std::make_shared<EmbedOptions>();
  auto* command = app.add_subcommand("embed", "Print a vector for each line of standard input");
  command->add_option("model", options->folder, "model folder")->required();
  add_placement_options(*command, options->model.placement);
  add_named_option<WeightType>(
      *command, "--weights", options->model.weights,
      "type of the weights: float32; bfloat16 and int8 are faster and less exact");
  command
      ->add_option("--threads", options->model.threads, "number of threads; default: one per core")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--strict", options->model.strict,
                    "refuse lines that are too long for the model instead of cutting them");
  command->add_flag("--skip-bad", options->model.skip_bad,
                    "give an unreadable line an empty vector and exit with 1; default: stop there");
  command->add_flag("--json", options->json, "one JSON object per line");
  command->add_flag("--tokens", options->tokens, "with --json: the vectors of the tokens too");
  command->add_flag("--check", options->check,
                    "print no vectors, but how many change bits if a text is by itself, in another "
                    "order or computed by another number of threads; exit with 1 if any does");
  command->footer(
      "Examples:\n"
      "  attend embed model < sentences.txt > vectors.txt\n"
      "  attend embed model --check < sentences.txt\n"
      "Output: the numbers of the vector, separated by blanks; nothing for an empty line; with\n"
      "--json, {\"source\", \"vector\": [numbers]}, with --tokens also tokens and vectors, one "
      "per\n"
      "token, with --skip-bad \"error\". A line that is too long for the model is cut. Standard\n"
      "error reports cut lines and, at the end, tokens that are unknown to the model.\n"
      "The vector is the mean of the token vectors, or the output of an imported sentence\n"
      "encoder.");
  command->callback([options] { run_embed(*options); });
}

}  // namespace attend
