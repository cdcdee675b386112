#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/evaluate_text.h"
#include "attend/cli/metric_options.h"
#include "attend/cli/named_option.h"
#include "attend/cli/output_file.h"
#include "attend/cli/output_line.h"
#include "attend/cli/progress.h"
#include "attend/cli/source_lines.h"
#include "attend/data/data_format.h"
#include "attend/data/readable.h"
#include "attend/data/tables.h"
#include "attend/inference/answer_json.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/ranking.h"
#include "attend/metrics/label_counts.h"
#include "attend/metrics/metric.h"

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
  int64_t negatives = 0;
  uint64_t seed = 1;  // random seed of the negatives
};

// Returns the metrics of answers in the order of `names`, then the metrics of likelihoods.
std::vector<const Metric*> chosen_metrics(const std::vector<std::string>& names, MeasuredFor kind) {
  std::vector<const Metric*> of_answers, others;
  for (const std::string& name : names)
    if (const Metric& row = metric_named(name); row.of_answers()) of_answers.push_back(&row);
  for (const Metric& row : metric_table()) {
    const bool unasked = row.measured == kind || row.measured == MeasuredFor::all;
    const bool chosen = names.empty() ? unasked : std::count(names.begin(), names.end(), row.name);
    if (row.of_answers()) {
      if (names.empty() && unasked) of_answers.push_back(&row);
    } else if (chosen || row.measured == MeasuredFor::always) {
      others.push_back(&row);
    }
  }
  if (kind == MeasuredFor::numbers)
    std::erase_if(others, [&](const Metric* row) {
      return std::count(names.begin(), names.end(), row->name) == 0;
    });
  of_answers.insert(of_answers.end(), others.begin(), others.end());
  return of_answers;
}

// Error if the model does not support a metric.
void check_metrics(const std::vector<const Metric*>& metrics, const Model& model) {
  const AnswerKind& kind = model.answer_kind();
  if (!kind.has_probabilities())
    for (const Metric* metric : metrics)
      if (!metric->of_numbers())
        fail(
            "--metric {}: does not compare numbers, and the model answers numbers; give some of {}",
            metric->name, fmt::join(metric_names(&Metric::of_numbers), ", "));
  for (const Metric* metric : metrics)
    if (metric->of_answers() && metric->of_ranks() != kind.ranks())
      fail("--metric {}: a model of type {} {}; leave the metric out", metric->name, model.type(),
           metric->of_ranks() ? "ranks no items" : "ranks items, and gives no such answers");
}

// File of the examples.
std::string test_file(const EvaluateOptions& options, const TextConfig& text) {
  if (!std::filesystem::is_directory(options.data)) return options.data;
  const DataFormatRow& row = text.format_row();
  return fmt::format("{}/{}", options.data, row.is_folder() ? row.examples_file : "test.tsv");
}

// Adds the number of unreadable lines to `left_out`.
std::vector<Example> read_test_examples(const EvaluateOptions& options, const Model& model,
                                        int64_t& left_out) {
  TextConfig text = model.text();
  if (options.references) text.references = *options.references;
  PairFiles files{options.data, options.target, options.source_column, options.target_column};
  if (options.skip_bad) files.check = model.label_check();
  return test_examples(model, files, text, print_remark, options.skip_bad ? &left_out : nullptr);
}

// Metrics of texts compare unnormalised texts; warns about references in another form.
void tell_form(const EvaluateOptions& options, const Model& model, const Measurement& measurement) {
  if (std::none_of(measurement.metrics.begin(), measurement.metrics.end(),
                   [](const Metric* metric) { return metric->needs == MetricNeeds::texts; }))
    return;
  const NormalForm form = model.text().normalise;
  int64_t others = 0;
  for (const ScoredAnswer& answer : measurement.evaluation.answers)
    for (const std::string& reference : answer.references)
      others += normalised(reference, form) != reference;
  if (others > 0)
    print_remark(
        fmt::format("{}: {} references are not in the normal form of the answers (data.normalise = "
                    "{}); BLEU and chrF count them as different",
                    options.data, others, name_of(form)));
}

void write_scores(const std::string& path, const Model& model,
                  const std::vector<Example>& examples) {
  const std::vector<double> scores = model.log_probabilities(examples);
  std::string lines;
  size_t next = 0;
  for (const Example& example : examples)
    for (const std::string& target : example.targets)
      lines += fmt::format("{}\t{}\t{:.6f}\n", in_one_line(example.source, field_breaks),
                           in_one_line(target, field_breaks), scores[next++]);
  write_file(path, lines);
  fmt::print(stderr, "wrote {}\n", path);
}

// A default metric may lack a figure for these answers, such as r2 of one number.
void leave_missing_figures_out(const EvaluateOptions& options, Measurement& result) {
  if (!options.metrics.empty()) return;
  std::erase_if(result.metrics, [&](const Metric* metric) {
    if (!metric->of_answers()) return false;
    const MetricCounts counts =
        count_answers(*metric, result.evaluation.measured_by(*metric), result.options);
    try {
      metric->figure(counts, result.options);
      return false;
    } catch (const Error& error) {
      result.missing.push_back(metric);
      print_remark(fmt::format("{}: {}; it is left out", options.data, error.what()));
      return true;
    }
  });
}

// Items and labels that were not in training have no likelihood.
void leave_likelihood_out(const EvaluateOptions& options, Measurement& result) {
  std::erase_if(result.metrics, [](const Metric* metric) { return !metric->of_answers(); });
  const bool ranks = !result.popular.answers.empty();
  print_remark(fmt::format("{}: the training data lack every {}, so loss is not computed{}",
                           options.data, ranks ? "last item" : "target",
                           ranks ? "" : "; check the column of the targets"));
}

std::string unread_part(int64_t tokens) {
  return tokens == 0 ? ""
                     : fmt::format(
                           " (model.maximum_source_length); the {} tokens after these have no "
                           "label and count as wrong",
                           tokens);
}

// Adds the number of unreadable examples to `left_out`.
Measurement measure_model(const EvaluateOptions& options, const Model& model, int64_t& left_out) {
  auto examples = read_test_examples(options, model, left_out);
  const TextConfig& text = model.text();
  const AnswerKind& kind = model.answer_kind();
  if (const SourceKind* files = text.source_kind(); files != nullptr && options.skip_bad)
    left_out +=
        take_out_unreadable(examples, *files->reader(text.frames), options.data, print_remark);
  if (examples.empty()) fail("{}: holds no example that can be read", options.data);
  model.check_labels(examples, test_file(options, text), print_remark);
  Measurement result{.metrics = chosen_metrics(options.metrics, kind.measured()),
                     .options = metric_options(model),
                     .counts = count_examples(examples),
                     .beam = options.search.beam};
  result.options.bleu = options.bleu;
  check_metrics(result.metrics, model);
  const RankOptions rank{options.search.keep_seen, options.negatives, options.seed};
  const auto start = std::chrono::steady_clock::now();
  {
    CountPrinter printer("decoded");
    const Report report = [&](int64_t done, int64_t total) { printer.show(done, total); };
    if (kind.ranks()) {
      result.evaluation = rank_next(model, examples, rank, report);
      result.popular = rank_popular(model, examples, rank);
      result.misses = count_misses(model, examples, result.evaluation);
    } else {
      result.evaluation = evaluate(model, examples, options.search, report);
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int64_t truncated = result.evaluation.truncated, cut = result.evaluation.cut;
  if (truncated > 0)
    fmt::print(stderr, "attend: {}: {} sources are cut to their {} {} tokens{}\n", options.data,
               truncated, kind.kept_part(), model.maximum_source_length(),
               unread_part(result.evaluation.unread));
  if (result.evaluation.converted_to_grey > 0)
    fmt::print(stderr,
               "attend: {}: {} sources are in colour and read in grey "
               "(data.colours = false)\n",
               options.data, result.evaluation.converted_to_grey);
  if (cut > 0 && !kind.continues())
    fmt::print(stderr, "attend: {}: {} answers are cut at the maximum length\n", options.data, cut);
  UnknownCount unknown;
  for (const Example& example : examples) unknown.add(model, example.source, example.line);
  unknown.tell(options.data + ": ");
  if (kind.has_probabilities()) result.likelihood = likelihood(model, examples);
  if (kind.has_probabilities() && result.likelihood.tokens == 0)
    leave_likelihood_out(options, result);
  if (std::any_of(result.metrics.begin(), result.metrics.end(),
                  [](const Metric* metric) { return metric->of_scores(); }))
    result.evaluation.scores = class_scores(model, examples);
  leave_missing_figures_out(options, result);
  tell_form(options, model, result);
  if (kind.is_label())
    for (const ScoredAnswer& answer : result.evaluation.answers)
      result.labels.add(answer.text, answer.references);
  if (!options.scores.empty()) write_scores(options.scores, model, examples);
  return result;
}

void print_confusion(const LabelCounts& counts) {
  const auto& confusion = counts.answers;
  constexpr size_t max_labels = 100;
  if (confusion.size() > max_labels) return;
  for (const auto& [label, answers] : confusion) {
    int64_t examples = 0;
    std::vector<std::string> others;
    others.reserve(answers.size());
    for (const auto& [answer, count] : answers) {
      examples += count;
      if (answer != label) others.push_back(fmt::format("{} as {}", count, shown_label(answer)));
    }
    const int64_t right = answers.contains(label) ? answers.at(label) : 0;
    fmt::print("label {}: {} of {} right{}{}\n", shown_label(label), right, examples,
               others.empty() ? "" : ", ", fmt::join(others, ", "));
  }
}

void print_popularity(const Measurement& measurement) {
  for (const Metric* metric : measurement.metrics)
    if (metric->of_answers())
      fmt::print("{:<20} {:>6}\n", metric->name + " by popularity",
                 metric->shown(measure_answers(*metric, measurement.popular.answers)));
}

void print_figures(const Measurement& measurement, const AnswerKind& kind) {
  const bool ranks = !measurement.popular.answers.empty();
  const std::string_view part = ranks                 ? "item"
                                : kind.is_label_set() ? "source"
                                : kind.is_label()     ? "label"
                                                      : "token";
  for (const Metric* metric : measurement.metrics) {
    fmt::print("{}", metric->report_text(measurement.report(*metric), part));
    if (const auto interval = measurement.interval(*metric))
      fmt::print("{:<20} {} to {}\n", "  95 % interval", metric->shown(interval->low),
                 metric->shown(interval->high));
  }
  if (ranks) print_popularity(measurement);
  if (const int64_t count = measurement.misses.unknown; count > 0)
    fmt::print("not in training      {:6} of the last items, which are misses\n", count);
  if (const int64_t count = measurement.misses.seen; count > 0)
    fmt::print(
        "seen before          {:6} of the last items, which are misses without --keep-seen\n",
        count);
  const Likelihood& likelihood = measurement.likelihood;
  fmt::print("{}", unknown_line(likelihood.unknown, likelihood.known().loss()));
  const auto [examples, sources, references] = measurement.counts;
  fmt::print("examples             {:6}\n", examples);
  fmt::print("sources              {:6}\n", sources);
  if (references > examples)
    fmt::print("references           {:6}, any of a source's is right\n", references);
  fmt::print("decoded in           {:6.2f} s, beam {}\n", measurement.seconds, measurement.beam);
  print_confusion(measurement.labels);
}

void run_evaluate(EvaluateOptions& options) {
  options.bleu.check();
  const Model model = Model::ensemble(options.models, options.model);
  take_search_defaults(options, model);
  check_decode_options(options, model);
  const AnswerKind& kind = model.answer_kind();
  if (options.negatives > 0 && !kind.ranks())
    fail("--negatives: needs a model that ranks items; {} is of type {}", options.models[0],
         model.type());
  if (kind.fills() && options.models.size() > 1)
    fail("{}: encoders are measured one at a time; give one model", options.models[1]);
  int64_t left_out = 0;
  if (kind.fills() || (options.target.empty() && kind.continues() && names_text(options.data))) {
    evaluate_text(model, options.data, options.json, options.skip_bad ? &left_out : nullptr);
  } else {
    const Measurement measurement = measure_model(options, model, left_out);
    if (options.json)
      fmt::print("{}\n", measurement_json(measurement).dump());
    else
      print_figures(measurement, kind);
  }
  if (left_out > 0) throw CLI::RuntimeError(1);
}

constexpr const char* evaluate_footer = R"(Examples:
  attend evaluate model --data data/test.tsv --beam 5
  attend evaluate model --data test.tsv --beam 5 --metric bleu,chrf --tokenise none
  attend evaluate run-1 run-2 run-3 --data test.tsv      # they decode as one
  attend evaluate book-model --data rest-of-the-book.txt
  attend evaluate shop --data interactions.tsv --metric hit@10,ndcg@10,mrr
The token error rate is edits per reference token (PER for phonemes), the sequence error rate the
share of answers that match no reference (WER for words), the token accuracy the share of
reference tokens that the answer has at the same place. Accuracy and F1 of a tagger count tokens.
Tokens beyond the tagger's maximum source length count as wrong. Labels that were not in training
count as wrong, too; the loss leaves them out. Every line is an example. With merged references,
the nearest reference of a source counts. BLEU and chrF equal sacreBLEU's to the digit, on the
unchanged targets.
JSON keys: loss, known_loss (over known tokens), unknown_tokens (number of the others; 0 for labels
and items, because the loss leaves unknown ones out), examples,
sources (different ones), references, beam, decode_seconds, by_length: [{source_length, examples,
and the rates}], and for each metric: token_error_rate, sequence_error_rate, accuracy,
token_accuracy, perplexity, bits_per_byte; bleu {name, score, signature, precisions,
brevity_penalty, hypothesis_length, reference_length} with bleu_by_length: [{first, last, mean,
examples, bleu}]; chrf, chrf++ {name, score, signature}; f1 {precision, recall, f1, micro_f1,
labels}. For several labels micro_f1, macro_f1 {f1, labels} and exact_match; the loss is per
source. For parts of passages squad_exact_match and squad_f1, as SQuAD counts them; the loss is
per end of an answer. For a classifier also confusion: {right label: {answer: examples}}. roc_auc
and average_precision need a classifier with two labels; they use the probability of the label
that is second in alphabetical order (1 of 0 and 1). A model of numbers has mse, rmse, mae and r2 (null for one answer), in the unit of
the targets, and neither loss nor unknown_tokens. These four, roc_auc and average_precision have KEY_interval: [low, high],
95 % by 1,000 bootstrap samples, or 200 to 1,000 for over 5,000 answers. A tagger has
unread_tokens if there are any. For a text: loss, known_loss, perplexity, bits_per_byte, tokens,
unknown_tokens and bytes; at least half a context precedes each token, except at the beginning.
window_loss uses consecutive windows of a full context, as validation does. Every unknown token is
<unk>, so perplexity means little if many tokens are unknown; bits_per_byte counts only known
tokens.
For a model that ranks items, --data holds interactions. Each user's last item is ranked among all
items of training, without the user's earlier items. An item that was not in training counts as a
miss. For items with equal scores, hit@K, ndcg@K and mrr are means over their orders. JSON: hit@10,
ndcg@10, mrr, loss (over items of training), popularity (the same metrics for ranking by
popularity, equal counts by name) and misses {unknown, seen}: right items that were not in training, and items that the
user took before, which --keep-seen ranks.
For an encoder: loss and perplexity of the masked tokens, asked_tokens (their number, chosen by
the content of each line), tokens, unknown_tokens (never masked), examples.)";

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  auto* command = app.add_subcommand("evaluate", "Measure a model's errors on pairs");
  add_decode_options(*command, *options);
  command
      ->add_option("--data", options->data,
                   "TSV, CSV, JSON Lines, .conll or .conllu file of pairs, or a folder with "
                   "test.tsv; for a language model also a text")
      ->required();
  command->add_option("--target", options->target,
                      "file of targets, if --data holds only one source per line");
  add_column_options(*command, options->source_column, options->target_column);
  add_named_option<References>(
      *command, "--references", options->references,
      "each: every line is an example; merged: lines with the same source are one example, and any "
      "of their targets is right; default: data.references of the model");
  add_metric_option(*command, options->metrics,
                    "metrics, separated by commas; default: the rates that fit the model",
                    [](const Metric& row) { return row.measured != MeasuredFor::always; });
  add_text_options(*command, options->bleu);
  add_output_file(
      *command, "--scores", options->scores,
      "file to write: source TAB target TAB log probability; a TAB in a text becomes \\t");
  command->add_flag(
      "--skip-bad", options->skip_bad,
      "skip and report lines, images and sounds that cannot be read; the exit code is then 1");
  command
      ->add_option("--negatives", options->negatives,
                   "number of random items to rank the right item against, for models that rank "
                   "items; 0: all items")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "random seed for --negatives")
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object; rates are fractions");
  command->footer(evaluate_footer);
  command->callback([options] { run_evaluate(*options); });
}

}  // namespace attend
