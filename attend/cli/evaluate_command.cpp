#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/evaluate_text.h"
#include "attend/cli/named_option.h"
#include "attend/cli/progress.h"
#include "attend/cli/text_metrics.h"
#include "attend/data/readable.h"
#include "attend/data/tables.h"
#include "attend/inference/evaluation.h"
#include "attend/runs/comparison.h"

namespace attend {
namespace {

using nlohmann::json;

struct EvaluateOptions : DecodeOptions {
  std::string data, target, source_column, target_column;
  std::optional<References> references;
  std::vector<std::string> metrics;
  BleuOptions bleu;
  std::string scores;
  bool json = false, skip_bad = false;
};

const std::vector<std::string> metric_names = {"bleu",        "chrf",           "chrf++",
                                               "token_error", "sequence_error", "accuracy",
                                               "f1",          "perplexity",     "bits_per_byte"};

struct Figures {
  ExampleCounts counts;
  Evaluation evaluation;
  ScoredTexts texts;
  LabelCounts labels;  // of a classifier
  Likelihood likelihood;
  double seconds = 0;
  int64_t left_out = 0;  // examples that cannot be read
};

bool asks_for(const EvaluateOptions& options, const std::string& name) {
  return std::find(options.metrics.begin(), options.metrics.end(), name) != options.metrics.end();
}

bool asks_for_corpus_score(const EvaluateOptions& options) {
  return asks_for(options, "bleu") || asks_for(options, "chrf") || asks_for(options, "chrf++");
}

LabelCounts count_labels(const ScoredTexts& texts) {
  LabelCounts counts;
  for (size_t i = 0; i < texts.answers.size(); ++i)
    counts.add(texts.answers[i], texts.references[i]);
  return counts;
}

// Adds to `left_out` how many lines cannot be read.
std::vector<Example> read_test_examples(const EvaluateOptions& options, const Model& model,
                                        int64_t& left_out) {
  TextConfig text = model.text();
  if (options.references) text.references = *options.references;
  const bool folder = std::filesystem::is_directory(options.data);
  return read_examples({folder ? options.data + "/test.tsv" : options.data, options.target,
                        options.source_column, options.target_column},
                       text, print_remark, options.skip_bad ? &left_out : nullptr);
}

// BLEU and chrF are of the texts as they stand.
void tell_form(const EvaluateOptions& options, const Model& model, const ScoredTexts& texts) {
  if (!asks_for_corpus_score(options)) return;
  const NormalForm form = model.text().normalise;
  int64_t others = 0;
  for (const auto& references : texts.references)
    for (const std::string& reference : references)
      others += normalised(reference, form) != reference;
  if (others > 0)
    print_remark(fmt::format(
        "{}: {} references are not in the normal form of the answers (data.normalise = {}), which "
        "BLEU and chrF tell apart",
        options.data, others, name_of(form)));
}

void write_scores(const std::string& path, const Model& model,
                  const std::vector<Example>& examples) {
  const std::vector<double> scores = model.log_probabilities(examples);
  std::string lines;
  size_t next = 0;
  for (const Example& example : examples)
    for (const std::string& target : example.targets)
      lines += fmt::format("{}\t{}\t{:.6f}\n", example.source, target, scores[next++]);
  write_file(path, lines);
  fmt::print(stderr, "wrote {}\n", path);
}

Figures measure(const EvaluateOptions& options, const Model& model) {
  Figures figures;
  auto examples = read_test_examples(options, model, figures.left_out);
  const TextConfig& text = model.text();
  if (const SourceKind* kind = text.source_kind(); kind != nullptr && options.skip_bad)
    figures.left_out +=
        take_out_unreadable({&examples}, *kind, text.frames, options.data, print_remark);
  model.check_labels(examples, options.data);
  figures.counts = count_examples(examples);
  const auto start = std::chrono::steady_clock::now();
  {
    CountPrinter printer("decoded");
    figures.evaluation = evaluate(model, examples, options.search,
                                  [&](int64_t done, int64_t total) { printer.show(done, total); });
  }
  figures.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (figures.evaluation.truncated > 0)
    fmt::print(stderr, "attend: {}: {} sources are cut to their first {} tokens\n", options.data,
               figures.evaluation.truncated, model.maximum_source_length());
  if (figures.evaluation.cut > 0 && !model.continues())
    fmt::print(stderr, "attend: {}: {} answers are cut at the longest length\n", options.data,
               figures.evaluation.cut);
  figures.likelihood = likelihood(model, examples);
  figures.texts = {figures.evaluation.answers, references(model, examples)};
  tell_form(options, model, figures.texts);
  if (model.answers_labels()) figures.labels = count_labels(figures.texts);
  if (!options.scores.empty()) write_scores(options.scores, model, examples);
  return figures;
}

// A metric of answers; perplexity and bits a byte are no such.
json metric_of(const std::string& name, const EvaluateOptions& options, const Figures& figures) {
  const ErrorCounts& errors = figures.evaluation.errors;
  if (name == "token_error") return errors.token_error_rate();
  if (name == "sequence_error") return errors.sequence_error_rate();
  if (name == "accuracy") return 1 - errors.sequence_error_rate();
  return text_metric(name, figures.texts, options.bleu);
}

// Rates alone: what a few answers have too.
json rates(const EvaluateOptions& options, const ErrorCounts& errors) {
  json result = json::object();
  if (asks_for(options, "token_error")) result["token_error_rate"] = errors.token_error_rate();
  if (asks_for(options, "sequence_error"))
    result["sequence_error_rate"] = errors.sequence_error_rate();
  if (asks_for(options, "accuracy")) result["accuracy"] = 1 - errors.sequence_error_rate();
  return result;
}

// The curve of Bahdanau et al. 2015, fig. 2.
json bleu_by_length(const EvaluateOptions& options, const Figures& figures) {
  const std::vector<int64_t>& lengths = figures.evaluation.lengths;
  json ranges = json::array();
  for (const LengthRange& range : length_ranges(figures.evaluation)) {
    std::vector<size_t> within;
    double total = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (!range.holds(lengths[i])) continue;
      within.push_back(i);
      total += static_cast<double>(lengths[i]);
    }
    if (within.empty()) continue;
    ranges.push_back({{"first", range.first},
                      {"last", range.last},
                      {"mean", total / static_cast<double>(within.size())},
                      {"examples", within.size()},
                      {"bleu", bleu_of(figures.texts, within, options.bleu)}});
  }
  return ranges;
}

json as_json(const EvaluateOptions& options, const Figures& figures, bool labels) {
  json lengths = json::array();
  for (const auto& [length, errors] : figures.evaluation.by_length) {
    lengths.push_back({{"source_length", length}, {"examples", errors.examples}});
    lengths.back().update(rates(options, errors));
  }
  json result = {{"loss", figures.likelihood.loss()},
                 {"known_loss", figures.likelihood.known().loss()},
                 {"unknown_symbols", figures.likelihood.unknown},
                 {"examples", figures.counts.examples},
                 {"sources", figures.counts.sources},
                 {"references", figures.counts.references},
                 {"beam", options.search.beam},
                 {"decode_seconds", figures.seconds},
                 {"by_length", lengths}};
  for (const std::string& name : options.metrics) {
    if (name == "perplexity")
      result[name] = figures.likelihood.perplexity();
    else if (name == "bits_per_byte")
      result[name] = figures.likelihood.bits_per_byte();
    else
      result[metric_key(name)] = metric_of(name, options, figures);
  }
  if (asks_for(options, "bleu")) result["bleu_by_length"] = bleu_by_length(options, figures);
  if (labels) result["confusion"] = figures.labels.answers;
  return result;
}

void print_confusion(const LabelCounts& counts) {
  const auto& confusion = counts.answers;
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
  for (const std::string& name : options.metrics)
    if (name != "perplexity" && name != "bits_per_byte")
      fmt::print("{}", metric_lines(name, metric_of(name, options, figures)));
  fmt::print("loss                 {:6.4f} nats a {}\n", figures.likelihood.loss(),
             labels ? "label" : "token");
  if (asks_for(options, "perplexity"))
    fmt::print("perplexity           {:6.4f}\n", figures.likelihood.perplexity());
  if (asks_for(options, "bits_per_byte"))
    fmt::print("bits per byte        {:6.4f}\n", figures.likelihood.bits_per_byte());
  fmt::print("{}", unknown_line(figures.likelihood.unknown, figures.likelihood.known().loss()));
  const auto [examples, sources, references] = figures.counts;
  fmt::print("examples             {:6}\n", examples);
  fmt::print("sources              {:6}\n", sources);
  if (references > examples)
    fmt::print("references           {:6}, any of a source's is right\n", references);
  fmt::print("decoded in           {:6.2f} s, beam {}\n", figures.seconds, options.search.beam);
  print_confusion(figures.labels);
}

void run_evaluate(EvaluateOptions options) {
  options.bleu.check();
  const Model model = Model::ensemble(options.models, options.model);
  if (model.fills() && options.models.size() > 1)
    fail("{}: encoders are measured one at a time; give one model", options.models[1]);
  if (model.fills() || (options.target.empty() && model.continues() && names_text(options.data)))
    return evaluate_text(model, options.data, options.json);
  const bool labels = model.answers_labels();
  if (options.metrics.empty() && labels) options.metrics = {"accuracy", "perplexity"};
  if (options.metrics.empty()) options.metrics = {"token_error", "sequence_error", "perplexity"};
  const Figures figures = measure(options, model);
  if (options.json)
    fmt::print("{}\n", as_json(options, figures, labels).dump());
  else
    print_figures(options, figures, labels);
  if (figures.left_out > 0) throw CLI::RuntimeError(1);
}

constexpr const char* evaluate_footer = R"(Examples:
  attend evaluate model --data data/test.tsv --beam 5
  attend evaluate model --data test.tsv --beam 5 --metric bleu,chrf --tokenise none
  attend evaluate run-1 run-2 run-3 --data test.tsv      # they decode as one
  attend evaluate book-model --data rest-of-the-book.txt
The token error rate is edits a reference token (PER for phonemes), the sequence error rate the
share of answers that match no reference (WER for words). Every line is an example, unless
references are merged: then the nearest of a source counts. BLEU and chrF are sacreBLEU's to the
digit, of the targets as they stand.
JSON keys: loss, known_loss (without unknown symbols, of which there are unknown_symbols), examples,
sources (different ones), references, beam, decode_seconds, by_length: [{source_length, examples,
and the rates}], and of each metric: token_error_rate, sequence_error_rate, accuracy, perplexity,
bits_per_byte; bleu {name, score, signature, precisions, brevity_penalty, hypothesis_length,
reference_length} with bleu_by_length: [{first, last, mean, examples, bleu}]; chrf, chrf++ {name,
score, signature}; f1 {precision, recall, f1, micro_f1, labels}. Of a classifier also confusion:
{right label: {answer: examples}}. Of a text: loss, known_loss, perplexity, bits_per_byte, symbols,
unknown_symbols and bytes, each token with half a context or more in front of it, but for the first;
and window_loss, of windows that fill the context one after another, as in validation. What a model
has no token for is one token, <unk>, however it is written, so that perplexity says little where
many are unknown; bits_per_byte is of the known ones alone.
Of an encoder: loss and perplexity of the tokens that are asked for, symbols, examples.)";

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  auto* command = app.add_subcommand("evaluate", "Measure a model's errors on pairs");
  add_decode_options(*command, *options);
  command
      ->add_option(
          "--data", options->data,
          "TSV or CSV file of pairs, or a folder with test.tsv; of a language model also a text")
      ->required();
  command->add_option("--target", options->target,
                      "the file of targets, where --data holds a source a line alone");
  add_column_options(*command, options->source_column, options->target_column);
  add_named_option<References>(
      *command, "--references", options->references,
      "each: every line is an example; merged: lines of one source are one, and any of their "
      "targets is right; else as data.references of the model");
  command
      ->add_option("--metric", options->metrics,
                   "what to measure, separated by commas; else the rates that fit the model")
      ->delimiter(',')
      ->check(CLI::IsMember(metric_names));
  add_text_metric_options(*command, options->bleu);
  command->add_option("--scores", options->scores,
                      "file to write: source TAB target TAB its log probability");
  command->add_flag(
      "--skip-bad", options->skip_bad,
      "leave lines, images and sounds out that cannot be read, and name them; the exit code "
      "is 1 then");
  command->add_flag("--json", options->json, "print one JSON object; rates are fractions");
  command->footer(evaluate_footer);
  command->callback([options] { run_evaluate(*options); });
}

}  // namespace attend
