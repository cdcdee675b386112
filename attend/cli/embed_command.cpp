#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/named_option.h"
#include "attend/cli/source_lines.h"
#include "attend/files/json_line.h"
#include "attend/inference/embedding_check.h"
#include "attend/inference/vector_precision.h"
#include "attend/text/text_lines.h"

namespace attend {
namespace {

struct EmbedOptions {
  std::string folder;
  ModelOptions model;
  bool json = false;
  bool tokens = false;
  bool check = false;
  std::string prompt_name, calibration;
  std::optional<std::string> prompt;
  int64_t dimensions = 0;
  VectorPrecision precision = VectorPrecision::float32;
};

// The embeddings of texts after the prompt that the options choose, with vectors that are cut.
class TextEmbedder {
 public:
  TextEmbedder(const EmbedOptions& options, const Model& model)
      : model_(model),
        prompt_(options.prompt ? *options.prompt : model.prompt(options.prompt_name)),
        dimensions_(static_cast<size_t>(options.dimensions)) {}

  std::vector<Embedding> operator()(const std::vector<std::string>& texts) const {
    std::vector<Embedding> embeddings = model_.embed(texts, prompt_);
    for (Embedding& embedding : embeddings) {
      if (embedding.whole.empty() || dimensions_ == 0) continue;
      if (dimensions_ > embedding.whole.size())
        fail("--dimensions is {}, and vectors of the model have {} numbers; lower it", dimensions_,
             embedding.whole.size());
      embedding.whole.resize(dimensions_);
    }
    return embeddings;
  }

 private:
  const Model& model_;
  std::string prompt_;
  size_t dimensions_;
};

nlohmann::ordered_json token_vectors(const Embedding& embedding) {
  auto rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < embedding.tokens.size(); ++i) {
    const auto begin = embedding.vectors.begin() + static_cast<int64_t>(i) * embedding.depth;
    rows.push_back(std::vector<float>(begin, begin + embedding.depth));
  }
  return rows;
}

// Prints vectors, or keeps them until their ranges are known.
class VectorPrinter {
 public:
  VectorPrinter(const EmbedOptions& options, const Model& model, const TextEmbedder& embed)
      : options_(options), model_(model) {
    if (!options.calibration.empty()) calibrate(embed);
  }

  void add(const std::string& source, Embedding embedding) {
    if (!needs_ranges(options_.precision) || !options_.calibration.empty())
      return print(source, embedding);
    add_range(embedding);
    Embedding kept;
    kept.whole = std::move(embedding.whole);
    kept.error = std::move(embedding.error);
    kept_.emplace_back(source, std::move(kept));
  }

  void end() {
    if (kept_.empty()) return;
    if (vectors_ == 1)
      fail(
          "--precision {} takes its ranges from the vectors, and there is one; give --calibration "
          "FILE with texts",
          name_of(options_.precision));
    tell_few();
    for (const auto& [source, embedding] : kept_) print(source, embedding);
  }

 private:
  void calibrate(const TextEmbedder& embed) {
    constexpr int64_t portion = 1024;  // token vectors of more texts take much memory
    const std::vector<std::string> texts = read_lines(options_.calibration);
    for (auto first = texts.begin(); first != texts.end();) {
      const auto last = first + std::min(portion, texts.end() - first);
      const std::vector<Embedding> embeddings = embed({first, last});
      for (size_t i = 0; i < embeddings.size(); ++i) {
        if (!embeddings[i].error.empty())
          fail("{}, line {}: {}", options_.calibration,
               first - texts.begin() + static_cast<int64_t>(i) + 1, embeddings[i].error);
        add_range(embeddings[i]);
      }
      first = last;
    }
    if (vectors_ == 0) fail("{}: no line has a vector; write texts", options_.calibration);
    tell_few();
  }

  void add_range(const Embedding& embedding) {
    if (embedding.whole.empty()) return;
    ranges_.add(embedding.whole);
    ++vectors_;
  }

  void tell_few() const {
    constexpr int64_t enough = 100;  // as in sentence-transformers
    if (vectors_ > 0 && vectors_ < enough)
      fmt::print(stderr,
                 "attend: --precision {}: the ranges are from {} vectors; {} or more are more "
                 "reliable, see --calibration\n",
                 name_of(options_.precision), vectors_, enough);
  }

  void print(const std::string& source, const Embedding& embedding) const {
    if (options_.precision == VectorPrecision::float32 || embedding.whole.empty())
      return print(source, embedding, embedding.whole);
    print(source, embedding, quantised(embedding.whole, options_.precision, ranges_));
  }

  template <class Numbers>
  void print(const std::string& source, const Embedding& embedding, const Numbers& vector) const {
    if (!options_.json) {
      fmt::print("{}\n", fmt::join(vector, " "));
      return;
    }
    nlohmann::ordered_json line = {{"source", source}, {"vector", vector}};
    if (!embedding.error.empty()) line["error"] = embedding.error;
    if (options_.tokens) {
      line["tokens"] = model_.source_texts(embedding.tokens);
      line["vectors"] = token_vectors(embedding);
    }
    fmt::print("{}\n", json_line(line));
  }

  const EmbedOptions& options_;
  const Model& model_;
  VectorRanges ranges_ = {};
  int64_t vectors_ = 0;  // in the ranges
  std::vector<std::pair<std::string, Embedding>> kept_ = {};
};

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
  if (options.prompt || !options.prompt_name.empty() || options.dimensions > 0 ||
      options.precision != VectorPrecision::float32)
    fail(
        "--check compares whole vectors after the usual prompt; leave --prompt, --prompt-name, "
        "--dimensions and --precision out");
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

void check_options(const EmbedOptions& options) {
  if (options.tokens && !options.json) fail("--tokens needs --json; add it");
  if (options.tokens && options.precision != VectorPrecision::float32)
    fail("--tokens prints vectors of float32; leave --precision out");
  if (options.prompt && !options.prompt_name.empty())
    fail("--prompt and --prompt-name are both given; leave one out");
  if (!options.calibration.empty() && !needs_ranges(options.precision))
    fail("--calibration gives ranges to --precision int8 and uint8; leave it out");
}

void run_embed(const EmbedOptions& options) {
  check_options(options);
  if (options.check) return run_check(options);
  // Results before a bad line are printed before its error ends the command.
  ModelOptions with_errors = options.model;
  with_errors.skip_bad = true;
  const Model model(options.folder, with_errors);
  const TextEmbedder embed(options, model);
  VectorPrinter printer(options, model, embed);
  SourceLines lines(options.model.skip_bad);
  UnknownCount unknown;
  std::vector<std::string> texts;
  const auto answer_bad = [&](const std::string& error) {
    Embedding none;
    none.error = error;
    printer.add("", none);
  };
  while (lines.read(texts, answer_bad)) {
    std::vector<Embedding> embeddings = embed(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string& error = embeddings[i].error;
      if (!error.empty() && !options.model.skip_bad)
        fail("standard input, line {}: {}", lines.number(i), error);
      if (embeddings[i].truncated) lines.tell_truncated(i, model);
      if (error.empty())
        unknown.add(model, texts[i], lines.number(i));
      else
        lines.tell_bad(i, error);
      printer.add(texts[i], std::move(embeddings[i]));
    }
    flush_output();
  }
  printer.end();
  flush_output();
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
  command->add_option("--prompt-name", options->prompt_name,
                      "name of the model's prompt before each text; default: its usual prompt");
  command->add_option("--prompt", options->prompt,
                      "text before each text, instead of the model's prompts; may be empty");
  command
      ->add_option("--dimensions", options->dimensions,
                   "number of leading numbers of a text's vector to keep; default: all")
      ->check(CLI::Range(1, 65536));
  add_named_option<VectorPrecision>(
      *command, "--precision", options->precision,
      "type of the numbers: int8 and uint8 are 256 parts of a range, binary and ubinary bytes of "
      "8 signs");
  command
      ->add_option("--calibration", options->calibration,
                   "file with a text per line; the ranges of --precision int8 and uint8 are from "
                   "their vectors; default: from standard input")
      ->check(CLI::ExistingFile);
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
      "  attend embed model --prompt-name query < questions.txt\n"
      "  attend embed model --precision int8 --calibration sentences.txt < questions.txt\n"
      "  attend embed model --check < sentences.txt\n"
      "Output: the numbers of the vector, separated by blanks; nothing for an empty line; with\n"
      "--json, {\"source\", \"vector\": [numbers]}, with --tokens also tokens and vectors, one "
      "per\n"
      "token, with --skip-bad \"error\". A line that is too long for the model is cut. Standard\n"
      "error reports cut lines and, at the end, tokens that are unknown to the model.\n"
      "The vector is the mean of the token vectors, or the output of an imported sentence\n"
      "encoder after its prompt. --precision int8 and uint8 without --calibration print\n"
      "vectors at the end of the input.");
  command->callback([options] { run_embed(*options); });
}

}  // namespace attend
