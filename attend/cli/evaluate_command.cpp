#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/predictor.h"
#include "attend/cli/progress.h"

namespace attend {
namespace {

using nlohmann::json;

struct EvaluateOptions : DecodeOptions {
  std::string data, target;
  bool json = false;
};

// By the label that is right, how often each label was the answer.
using Confusion = std::map<std::string, std::map<std::string, int64_t>>;

struct Figures {
  Evaluation evaluation;
  Confusion confusion;  // of a classifier
  double loss = 0;
  double seconds = 0;
};

// Where several labels are right, the answer among them or else the first counts.
Confusion count_labels(const std::vector<Example>& examples, const Evaluation& evaluation,
                       const TextCodec& codec) {
  Confusion counts;
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::string& answer = evaluation.answers[i];
    std::vector<std::string> right;
    right.reserve(examples[i].targets.size());
    for (const std::string& target : examples[i].targets)
      right.push_back(codec.join(codec.split(target)));
    const bool found = std::find(right.begin(), right.end(), answer) != right.end();
    ++counts[found ? answer : right[0]][answer];
  }
  return counts;
}

// Of two files every line counts, as in published figures.
std::vector<Example> read_examples(const EvaluateOptions& options) {
  if (!options.target.empty())
    return read_parallel(options.data, options.target, {.group = false}).examples;
  const bool folder = std::filesystem::is_directory(options.data);
  return read_pairs(folder ? options.data + "/test.tsv" : options.data);
}

Figures measure(const EvaluateOptions& options, const PairModel& model) {
  const auto examples = read_examples(options);
  check_labels(model, examples, options.data);
  Predictor predictor(model, model.network, options.threads);
  Figures figures;
  const auto start = std::chrono::steady_clock::now();
  {
    CountPrinter printer("decoded");
    figures.evaluation = evaluate(predictor, model, examples, options.search,
                                  [&](int64_t done, int64_t total) { printer.show(done, total); });
  }
  figures.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  figures.loss = predictor.loss(model.encode(examples));
  if (!model.model.is_classifier()) return figures;
  figures.loss *= 2;  // a label: its end, the other symbol, costs nothing
  figures.confusion = count_labels(examples, figures.evaluation, model.codecs.target);
  return figures;
}

json rates(const ErrorCounts& errors, bool labels) {
  if (labels) return {{"accuracy", 1 - errors.sequence_error_rate()}};
  return {{"token_error_rate", errors.token_error_rate()},
          {"sequence_error_rate", errors.sequence_error_rate()}};
}

json as_json(const EvaluateOptions& options, const Figures& figures, bool labels) {
  json lengths = json::array();
  for (const auto& [length, errors] : figures.evaluation.by_length) {
    lengths.push_back({{"source_length", length}, {"examples", errors.examples}});
    lengths.back().update(rates(errors, labels));
  }
  json result = {{"loss", figures.loss},
                 {"perplexity", std::exp(figures.loss)},
                 {"examples", figures.evaluation.errors.examples},
                 {"beam", options.search.beam},
                 {"decode_seconds", figures.seconds},
                 {"by_length", lengths}};
  result.update(rates(figures.evaluation.errors, labels));
  if (labels) result["confusion"] = figures.confusion;
  return result;
}

void print_confusion(const Confusion& confusion) {
  constexpr size_t most_labels = 100;
  if (confusion.size() > most_labels) return;
  for (const auto& [label, answers] : confusion) {
    int64_t examples = 0;
    std::vector<std::string> others;
    others.reserve(answers.size());
    for (const auto& [answer, count] : answers) {
      examples += count;
      if (answer != label) others.push_back(fmt::format("{} as {}", count, answer));
    }
    const int64_t right = answers.contains(label) ? answers.at(label) : 0;
    fmt::print("label {}: {} of {} right{}{}\n", label, right, examples, others.empty() ? "" : ", ",
               fmt::join(others, ", "));
  }
}

void print_figures(const EvaluateOptions& options, const Figures& figures, bool labels) {
  const ErrorCounts& errors = figures.evaluation.errors;
  if (labels) {
    fmt::print("accuracy             {:6.2f} %\n", 100 * (1 - errors.sequence_error_rate()));
  } else {
    fmt::print("token error rate     {:6.2f} %\n", 100 * errors.token_error_rate());
    fmt::print("sequence error rate  {:6.2f} %\n", 100 * errors.sequence_error_rate());
  }
  fmt::print("loss                 {:6.4f} nats a {}\n", figures.loss, labels ? "label" : "symbol");
  fmt::print("perplexity           {:6.4f}\n", std::exp(figures.loss));
  fmt::print("examples             {:6}\n", errors.examples);
  fmt::print("decoded in           {:6.2f} s, beam {}\n", figures.seconds, options.search.beam);
  print_confusion(figures.confusion);
}

void run_evaluate(const EvaluateOptions& options) {
  const PairModel model = load_pair_model(options.model);
  const bool labels = model.model.is_classifier();
  const Figures figures = measure(options, model);
  if (options.json)
    fmt::print("{}\n", as_json(options, figures, labels).dump());
  else
    print_figures(options, figures, labels);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  auto* command = app.add_subcommand("evaluate", "Measure a model's errors on pairs");
  add_decode_options(*command, *options);
  command->add_option("--data", options->data, "TSV file of pairs, or a folder with test.tsv")
      ->required();
  command->add_option("--target", options->target,
                      "the file of targets, where --data holds a source a line alone");
  command->add_flag("--json", options->json, "print one JSON object; rates are fractions");
  command->footer(
      "Example:\n"
      "  attend evaluate model --data data/test.tsv --beam 5\n"
      "The token error rate is edits a reference symbol (PER for phonemes), the sequence error\n"
      "rate the share of answers that match no reference (WER for words); of several references "
      "the\n"
      "nearest counts. JSON keys: token_error_rate, sequence_error_rate, loss, perplexity, "
      "examples,\n"
      "beam, decode_seconds, by_length: [{source_length, examples, token_error_rate,\n"
      "sequence_error_rate}]. Of a classifier: accuracy instead of both rates, and confusion:\n"
      "{right label: {answer: examples}}.");
  command->callback([options] { run_evaluate(*options); });
}

}  // namespace attend
