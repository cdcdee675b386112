#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/metric_options.h"
#include "attend/data/text_lines.h"
#include "attend/data/units.h"
#include "attend/metrics/metric.h"

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

std::vector<ScoredAnswer> read_answers(const ScoreOptions& options) {
  std::vector<ScoredAnswer> answers;
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  for (std::string& line : parse_lines(input, "standard input"))
    answers.push_back({.text = std::move(line), .references = {}});
  if (answers.empty()) fail("standard input is empty; give one answer per line");
  for (const std::string& path : options.references) {
    std::vector<std::string> lines = read_lines(path);
    if (lines.size() != answers.size())
      fail("{}: has {} lines, standard input {}; each line is the reference of one answer", path,
           lines.size(), answers.size());
    for (size_t i = 0; i < lines.size(); ++i) answers[i].references.push_back(std::move(lines[i]));
  }
  return answers;
}

void split(std::vector<ScoredAnswer>& answers, Units units) {
  for (size_t i = 0; i < answers.size(); ++i)
    at_answer(i, [&] {
      ScoredAnswer& answer = answers[i];
      for (const std::string& reference : answer.references)
        answer.reference_tokens.push_back(split_units(reference, units));
      answer.tokens = split_units(answer.text, units);
    });
}

// The tokens of an answer are in the order of its ranking, the best first.
void place(std::vector<ScoredAnswer>& answers) {
  for (size_t i = 0; i < answers.size(); ++i)
    at_answer(i, [&] {
      std::vector<std::string> right;
      for (const auto& tokens : answers[i].reference_tokens) {
        if (tokens.size() != 1)
          fail("a reference is {} tokens; one token is what should be ranked first", tokens.size());
        right.push_back(tokens[0]);
      }
      answers[i].rank = rank_among(answers[i].tokens, right);
    });
}

// A line's figures alone.
void print_sentences(const ScoreOptions& options, const std::vector<const Metric*>& metrics,
                     const std::vector<ScoredAnswer>& answers) {
  MetricOptions alone{options.bleu};
  alone.bleu.effective_order = true;
  for (const ScoredAnswer& answer : answers) {
    json figures;
    std::vector<std::string> shown;
    for (const Metric* metric : metrics) {
      const double figure = measure_answers(*metric, {answer}, alone);
      figures[metric->key] = figure;
      shown.push_back(fmt::format("{:.4f}", figure));
    }
    if (options.json)
      fmt::print("{}\n", figures.dump());
    else
      fmt::print("{}\n", fmt::join(shown, "\t"));
  }
}

void run_score(const ScoreOptions& options) {
  options.bleu.check();
  std::vector<const Metric*> metrics;
  for (const std::string& name : options.metrics) metrics.push_back(&metric_named(name));
  std::vector<ScoredAnswer> answers = read_answers(options);
  const auto any_needs = [&](MetricNeeds needs) {
    return std::any_of(metrics.begin(), metrics.end(),
                       [&](const Metric* metric) { return metric->needs == needs; });
  };
  const bool ranked = any_needs(MetricNeeds::rank);
  if (ranked || any_needs(MetricNeeds::tokens))
    split(answers, value_of<Units>(options.units, "unit"));
  if (ranked) place(answers);
  if (options.sentences) return print_sentences(options, metrics, answers);
  const MetricOptions chosen{options.bleu};
  json figures = {{"examples", answers.size()}};
  for (const Metric* metric : metrics) {
    const json report = metric->report(count_answers(*metric, answers, chosen), chosen);
    figures[metric->key] = report;
    if (!options.json) fmt::print("{}", metric->report_text(report));
  }
  if (options.json) fmt::print("{}\n", figures.dump());
}

}  // namespace

void add_score_command(CLI::App& app) {
  auto options = std::make_shared<ScoreOptions>();
  auto* command =
      app.add_subcommand("score", "Measure the answers of standard input against references");
  command->add_option("--reference", options->references, "file with one line per answer; several")
      ->required()
      ->check(CLI::ExistingFile);
  add_metric_option(*command, options->metrics, "what to measure, separated by commas",
                    &Metric::of_answers)
      ->capture_default_str();
  add_text_options(*command, options->bleu);
  command
      ->add_option("--units", options->units,
                   "what token_error counts (char, space), what accuracy compares (line), what "
                   "ranks (space)")
      ->check(CLI::IsMember({"char", "space", "line"}))
      ->capture_default_str();
  command->add_flag("--sentences", options->sentences, "figures of each line, BLEU included");
  command->add_flag("--json", options->json, "print one JSON object; rates are fractions");
  command->footer(
      "Examples:\n"
      "  attend score --reference test.de < answers.de\n"
      "  attend score --metric bleu,chrf --reference a.txt --reference b.txt < answers.txt\n"
      "  attend score --metric accuracy,f1 --reference labels.txt < answers.txt\n"
      "  attend score --metric rmse,r2 --reference measured.txt < numbers.txt\n"
      "  attend score --metric roc_auc --reference classes.txt < scores.txt\n"
      "  attend score --metric hit@10,ndcg@10,mrr --reference items.txt < rankings.txt\n"
      "  attend score --metric span_f1 --reference bio.txt < labels.txt\n"
      "BLEU and chrF are sacreBLEU's, to the digit, and print its signature; they are of the "
      "unchanged "
      "texts,\n"
      "token_error, sequence_error and accuracy in Unicode's form NFC. JSON: examples, "
      "and a\n"
      "key per metric: bleu {name, score, signature, precisions, brevity_penalty, "
      "hypothesis_length,\n"
      "reference_length}, chrf and chrf++ {name, score, signature}, f1 {precision, recall, f1,\n"
      "micro_f1, labels}, span_f1 {precision, recall, f1}; the others are numbers, rates "
      "fractions. With\n"
      "--sentences an object, or numbers between TABs, per line: BLEU with effective order.\n"
      "mse, rmse, mae and r2 are of a number a line. roc_auc and average_precision are of a score\n"
      "a line, and the reference is 1 or 0. hit@K, ndcg@K (any K) and mrr are of a line of items,\n"
      "the best first, and the reference is the right one. span_f1 is of a line of labels O, "
      "B-TYPE "
      "and\nI-TYPE, and counts spans as conlleval does.");
  command->callback([options] { run_score(*options); });
}

}  // namespace attend
