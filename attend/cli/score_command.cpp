#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <iterator>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/text_metrics.h"
#include "attend/data/metrics.h"
#include "attend/data/text_lines.h"
#include "attend/data/units.h"

namespace attend {
namespace {

using nlohmann::json;

struct ScoreOptions {
  std::vector<std::string> references;
  std::vector<std::string> metrics = {"bleu"};
  BleuOptions bleu;
  std::string units = "space";
  bool sentences = false;
  bool json = false;
};

ScoredTexts read_texts(const ScoreOptions& options) {
  ScoredTexts texts;
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  texts.answers = parse_lines(input, "standard input");
  if (texts.answers.empty()) fail("standard input is empty; give an answer a line");
  texts.references.resize(texts.answers.size());
  for (const std::string& path : options.references) {
    std::vector<std::string> lines = read_lines(path);
    if (lines.size() != texts.answers.size())
      fail("{}: has {} lines, standard input {}; each line is the reference of one answer", path,
           lines.size(), texts.answers.size());
    for (size_t i = 0; i < lines.size(); ++i) texts.references[i].push_back(std::move(lines[i]));
  }
  return texts;
}

ErrorCounts count_errors(const ScoredTexts& texts, Units units) {
  ErrorCounts errors;
  for (size_t i = 0; i < texts.answers.size(); ++i)
    at_answer(i, [&] {
      std::vector<std::vector<std::string>> references;
      references.reserve(texts.references[i].size());
      for (const std::string& reference : texts.references[i])
        references.push_back(split_units(reference, units));
      errors.add(split_units(texts.answers[i], units), references);
    });
  return errors;
}

json measure(const std::string& name, const ScoredTexts& texts, const ScoreOptions& options) {
  if (name != "token_error" && name != "sequence_error" && name != "accuracy")
    return text_metric(name, texts, options.bleu);
  const ErrorCounts errors = count_errors(texts, parse_units(options.units));
  if (name == "token_error") return errors.token_error_rate();
  return name == "accuracy" ? 1 - errors.sequence_error_rate() : errors.sequence_error_rate();
}

// A line's figures alone: of each metric its score or rate.
void print_sentences(const ScoreOptions& options, const ScoredTexts& texts) {
  ScoreOptions alone = options;
  alone.bleu.effective_order = true;
  for (size_t i = 0; i < texts.answers.size(); ++i) {
    const ScoredTexts one{{texts.answers[i]}, {texts.references[i]}};
    json figures;
    std::vector<std::string> shown;
    for (const std::string& name : options.metrics) {
      const json metric = measure(name, one, alone);
      const json figure = metric.is_number() ? metric : metric[name == "f1" ? "f1" : "score"];
      figures[metric_key(name)] = figure;
      shown.push_back(fmt::format("{:.4f}", figure.get<double>()));
    }
    if (options.json)
      fmt::print("{}\n", figures.dump());
    else
      fmt::print("{}\n", fmt::join(shown, "\t"));
  }
}

void run_score(const ScoreOptions& options) {
  options.bleu.check();
  const ScoredTexts texts = read_texts(options);
  if (options.sentences) return print_sentences(options, texts);
  json figures = {{"examples", texts.answers.size()}};
  for (const std::string& name : options.metrics) {
    const json metric = measure(name, texts, options);
    figures[metric_key(name)] = metric;
    if (!options.json) fmt::print("{}", metric_lines(name, metric));
  }
  if (options.json) fmt::print("{}\n", figures.dump());
}

}  // namespace

void add_score_command(CLI::App& app) {
  auto options = std::make_shared<ScoreOptions>();
  auto* command =
      app.add_subcommand("score", "Measure the answers of standard input against references");
  command->add_option("--reference", options->references, "file with a line an answer; several")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--metric", options->metrics, "what to measure, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"bleu", "chrf", "chrf++", "token_error", "sequence_error", "accuracy", "f1"}))
      ->capture_default_str();
  add_text_metric_options(*command, options->bleu);
  command
      ->add_option("--units", options->units,
                   "what token_error counts (char, space), and what accuracy compares (line)")
      ->check(CLI::IsMember({"char", "space", "line"}))
      ->capture_default_str();
  command->add_flag("--sentences", options->sentences, "figures of each line, of BLEU too");
  command->add_flag("--json", options->json, "print one JSON object; rates are fractions");
  command->footer(
      "Examples:\n"
      "  attend score --reference test.de < answers.de\n"
      "  attend score --metric bleu,chrf --reference a.txt --reference b.txt < answers.txt\n"
      "  attend score --metric accuracy,f1 --reference labels.txt < answers.txt\n"
      "BLEU and chrF are sacreBLEU's, to the digit, and print its signature; they are of the texts "
      "as\n"
      "they stand, token_error, sequence_error and accuracy in Unicode's form NFC. JSON: examples, "
      "and a\n"
      "key a metric: bleu {name, score, signature, precisions, brevity_penalty, "
      "hypothesis_length,\n"
      "reference_length}, chrf and chrf++ {name, score, signature}, f1 {precision, recall, f1,\n"
      "micro_f1, labels}; token_error, sequence_error and accuracy are fractions. With "
      "--sentences\n"
      "an object, or numbers between TABs, a line: BLEU with effective order.");
  command->callback([options] { run_score(*options); });
}

}  // namespace attend
