#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/metrics/bleu.h"
#include "attend/metrics/length_ranges.h"
#include "attend/metrics/likelihood.h"

namespace attend {

// Position of the right answer among all answers ranked by score.
struct Rank {
  int64_t above = 0;  // others with a higher score
  int64_t tied = 0;   // others with an equal score

  bool operator==(const Rank&) const = default;
};

// An answer of a model and its references.
struct ScoredAnswer {
  std::string text;                     // text of the answer
  std::vector<std::string> references;  // all texts that are right; at least one
  std::vector<std::string> tokens = {};
  std::vector<std::vector<std::string>> reference_tokens = {};  // per reference
  int64_t source_length = 0;                                    // in tokens
  // Reference tokens that the model did not read because the source is too long. Metrics of labels
  // count them as wrong.
  int64_t unread = 0;
  std::optional<Rank> rank = {};  // empty: the right answer was not ranked
};

// Sums over answers, by name: "edits". A missing number is 0.
using MetricCounts = std::map<std::string, double>;

struct MetricOptions {
  BleuOptions bleu = {};  // `lowercase` also applies to chrF
  // Whether an answer has one label per token: accuracy and F1 then compare tokens, not whole
  // answers.
  bool label_per_token = false;
};

// Figure of counts, which are in the order of names given earlier.
using CountedFigure = std::function<double(const std::vector<double>& counts)>;

enum class MetricNeeds {
  texts,    // texts of answers
  tokens,   // tokens of answers
  numbers,  // texts that are numbers, one reference per answer
  scores,   // score for the second of two labels, and whether that label is right
  rank,     // rank of the right answer
  loss,     // nats and tokens of a likelihood
  bytes     // the whole likelihood
};

// Breakdown of a metric of answers by source length.
enum class ByLength { none, each_length, ranges };

// Models for which a metric is measured by default.
enum class MeasuredFor {
  none,
  sequences,
  labels,
  label_sets,
  tags,
  numbers,
  rankings,
  spans,
  all,
  always
};

// Row of the metric table; all properties of a metric are in its row. A row has either `count` and
// `figure`, or `of_likelihood`.
struct Metric {
  std::string name;   // in settings and options: "token_error"
  std::string key;    // in JSON: "token_error_rate"
  std::string title;  // in sentences, tables and pictures: "token error"
  MetricNeeds needs = MetricNeeds::texts;
  bool higher_is_better = false;
  bool is_share = false;  // fraction of 1, shown in per cent
  int decimals = 2;       // shown decimals
  // Whether texts are whole labels. Readers of files must read them as units of `line`, because
  // outer white space and the Unicode form are not part of a label.
  bool compares_labels = false;
  std::string mean = {};                     // "nats per" of token or label; empty: not such a mean
  MeasuredFor measured = MeasuredFor::none;  // `always`: even if other metrics are selected
  ByLength by_length = ByLength::none;
  bool has_interval = false;   // evaluate prints interval_of()
  std::string companion = {};  // metric that a comparison shows with it
  std::string runs_key = {};   // in JSON, for the figures of several runs; empty: `key`

  // Counts of one answer. Error on invalid UTF-8, and if a text or the labels do not meet `needs`.
  // `figure`: Error if the counts have no figure.
  std::function<MetricCounts(const ScoredAnswer&, const MetricOptions&)> count = {};
  std::function<double(const MetricCounts&, const MetricOptions&)> figure = {};
  // Optional; computes many figures for the same names, as interval_of() does, and reads the names
  // only once. The result takes a count of 0 or more per name and returns the value of `figure`.
  std::function<CountedFigure(const std::vector<std::string>& names)> figure_by_name = {};
  std::function<double(const Likelihood&)> of_likelihood = {};
  // An object with more than the figure, and its lines of text; empty: only the figure.
  std::function<nlohmann::json(const MetricCounts&, const MetricOptions&)> details = {};
  std::function<std::string(const nlohmann::json& details)> details_text = {};

  bool of_answers() const { return static_cast<bool>(count); }
  bool of_numbers() const { return needs == MetricNeeds::numbers; }
  bool of_scores() const { return needs == MetricNeeds::scores; }
  bool of_ranks() const { return needs == MetricNeeds::rank; }
  // Whether a validation supports the metric; it does not count bytes.
  bool of_validation() const { return needs != MetricNeeds::bytes; }
  bool of_texts() const { return needs == MetricNeeds::texts || needs == MetricNeeds::tokens; }
  std::string shown(double figure) const;  // "2.05 %"
  // JSON value under the key: the details, or the figure. Error for metrics of likelihoods.
  nlohmann::json report(const MetricCounts& counts, const MetricOptions& options) const;
  // The report as lines of text; a mean is per `part`.
  std::string report_text(const nlohmann::json& report, std::string_view part = "token") const;
};

// The rows in display order. Metrics with other numbers than hit@10 and ndcg@10, such as hit@7,
// also have rows, but are not listed.
const std::deque<Metric>& metric_table();
const Metric* find_metric(std::string_view name);   // null on an unknown name
const Metric& metric_named(std::string_view name);  // Error on an unknown name

// Names of the rows for which `takes` is true.
std::vector<std::string> metric_names(const std::function<bool(const Metric&)>& takes);

// Names of rows that accept any number K from 1: "hit@K".
std::vector<std::string> numbered_metric_names();

// Adds a row, for all commands and settings. Error if the name exists. Must not run while another
// thread reads the table.
void register_metric(Metric metric);

// Sums the counts of all answers with source lengths in `lengths`. `is_stopped` is called before
// each answer; true is an Error. Errors name the answer, from 1.
MetricCounts count_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                           const MetricOptions& options, const LengthRange& lengths = {},
                           const std::function<bool()>& is_stopped = {});

// Figure of count_answers().
double measure_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                       const MetricOptions& options = {}, const LengthRange& lengths = {});

// Confidence interval of a figure.
struct FigureInterval {
  double low = 0, high = 0;
};

// 95 % bootstrap interval (Efron 1979) of the figure: 1,000 samples of all answers with
// replacement, always with the same draws; over 5,000 answers fewer samples, at least 200. Samples
// without a figure are ignored; empty if fewer than 100 have one. Takes time linear in the number
// of answers; `count` reads each answer once.
std::optional<FigureInterval> interval_of(const Metric& metric,
                                          const std::vector<ScoredAnswer>& answers,
                                          const MetricOptions& options = {});

// Position of the first right item in `ranked`, which is sorted best first; empty if there is none.
std::optional<Rank> rank_among(const std::vector<std::string>& ranked,
                               const std::vector<std::string>& right);

// Adds the counts of `part` to `sum`, by name.
void add_counts(MetricCounts& sum, const MetricCounts& part);

// Calls `work` for answer i, counted from 0. Prefixes an Error with the answer's number.
void at_answer(size_t i, const std::function<void()>& work);

}  // namespace attend
