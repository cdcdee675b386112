#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/metric_options.h"
#include "attend/cli/named_option.h"
#include "attend/inference/text_scores.h"
#include "attend/metrics/metric.h"
#include "attend/text/text_lines.h"
#include "attend/text/units.h"

namespace attend {
namespace {

using nlohmann::json;

struct ScoreOptions {
  std::vector<std::string> references;
  TextScoring scoring;
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

// Prints only the figures of each line.
void print_sentences(const ScoreOptions& options, const TextScores& scores) {
  for (size_t i = 0; i < scores.size(); ++i) {
    const json figures = scores.each(i);
    if (options.json) {
      fmt::print("{}\n", figures.dump());
      continue;
    }
    std::vector<std::string> shown;
    for (const Metric* metric : scores.metrics())
      shown.push_back(fmt::format("{:.4f}", figures[metric->key].get<double>()));
    fmt::print("{}\n", fmt::join(shown, "\t"));
  }
}

void run_score(const ScoreOptions& options) {
  options.scoring.options.bleu.check();
  const TextScores scores(options.scoring, read_answers(options));
  if (options.sentences) return print_sentences(options, scores);
  const json figures = scores.all();
  if (options.json)
    fmt::print("{}\n", figures.dump());
  else
    for (const Metric* metric : scores.metrics())
      fmt::print("{}", metric->report_text(figures[metric->key]));
}

}  // namespace

void add_score_command(CLI::App& app) {
  auto options = std::make_shared<ScoreOptions>();
  auto* command =
      app.add_subcommand("score", "Measure the answers on standard input against references");
  command
      ->add_option("--reference", options->references,
                   "file with one reference per answer; repeatable")
      ->required()
      ->check(CLI::ExistingFile);
  add_metric_option(*command, options->scoring.metrics, "metrics, separated by commas",
                    &Metric::of_answers)
      ->capture_default_str();
  add_text_options(*command, options->scoring.options.bleu);
  add_named_option<Units>(
      *command, "--units", options->scoring.units,
      "units of token_error (char, space), accuracy (line) and ranking (space)");
  command->add_flag("--sentences", options->sentences, "print the figures of each line, too");
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
      "BLEU and chrF are sacreBLEU's, to the digit, and print its signature; they use the\n"
      "unchanged texts; token_error, sequence_error and accuracy use Unicode's form NFC. JSON:\n"
      "examples, and a key per metric: bleu {name, score, signature, precisions,\n"
      "brevity_penalty, hypothesis_length, reference_length}, chrf and chrf++ {name, score,\n"
      "signature}, f1 {precision, recall, f1, micro_f1, labels}, span_f1 {precision, recall,\n"
      "f1}; the others are numbers; rates are fractions.\n"
      "With --sentences: an object, or numbers separated by TABs, per line; BLEU has effective\n"
      "order.\n"
      "mse, rmse, mae and r2 read one number per line. roc_auc and average_precision read one\n"
      "score per line; the reference is 1 or 0. hit@K, ndcg@K (any K) and mrr read a line of\n"
      "items, the best first; the reference is the right item. span_f1 reads a line of labels\n"
      "O, B-TYPE, I-TYPE, also E-, S- (BIOES), L- and U-TYPE (BILOU), and counts spans as\n"
      "conlleval does. White space around a label is ignored. average_precision needs a\n"
      "reference of 1, roc_auc one of each.");
  command->callback([options] { run_score(*options); });
}

}  // namespace attend
