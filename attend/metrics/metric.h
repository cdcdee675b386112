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

// Where the right answer is among all that were ranked by score.
struct Rank {
  int64_t above = 0;  // others of a higher score
  int64_t tied = 0;   // others of the same score

  bool operator==(const Rank&) const = default;
};

// An answer of a model and what it is measured against.
struct ScoredAnswer {
  std::string text;                     // as the model writes it
  std::vector<std::string> references;  // every text that counts as right; at least one
  std::vector<std::string> tokens = {};
  std::vector<std::vector<std::string>> reference_tokens = {};  // of each reference
  int64_t source_length = 0;                                    // in tokens
  // Tokens of the reference that the model has not read, because its source is too long for it.
  // Metrics of labels count them as wrong.
  int64_t unread = 0;
  std::optional<Rank> rank = {};  // none: the right answer is not among those that were ranked
};

// Sums over answers, by name: "edits". A missing number is 0.
using MetricCounts = std::map<std::string, double>;

struct MetricOptions {
  BleuOptions bleu = {};  // chrF reads its lowercase too
  // Whether an answer is a label per token: accuracy and F1 then compare tokens, not whole answers.
  bool label_per_token = false;
};

// The figure of counts in the order of names that are given before.
using CountedFigure = std::function<double(const std::vector<double>& counts)>;

enum class MetricNeeds {
  texts,    // answers as they are written
  tokens,   // answers, by their tokens
  numbers,  // answers and references whose texts are numbers, one reference for each answer
  scores,   // how far each answer speaks for the second of two labels, and whether that is right
  rank,     // where the right answer is among all of them
  loss,     // the nats and tokens of a likelihood
  bytes     // all of a likelihood
};

// How a metric of answers is broken down by the length of the source.
enum class ByLength { none, each_length, ranges };

// The models for which a metric is measured by default.
enum class MeasuredFor { none, sequences, labels, tags, numbers, rankings, all, always };

// A metric is a row; all code that needs to know a metric asks the row. A row has either `count`
// and `figure`, or `of_likelihood`.
struct Metric {
  std::string name;   // in settings and options: "token_error"
  std::string key;    // in JSON: "token_error_rate"
  std::string title;  // in sentences, tables and pictures: "token error"
  MetricNeeds needs = MetricNeeds::texts;
  bool higher_is_better = false;
  bool is_share = false;  // of 1, shown in per cent
  int decimals = 2;       // that are shown
  // Whether texts are whole labels, of which white space at both ends and the form of Unicode are
  // no part: who reads them from a file takes them as units of `line`.
  bool compares_labels = false;
  std::string mean = {};  // "nats per" of token or label; empty: the figure is no such mean
  MeasuredFor measured = MeasuredFor::none;  // `always`: also where others are chosen
  ByLength by_length = ByLength::none;
  bool has_interval = false;   // evaluate says how far the figure is known: interval_of()
  std::string companion = {};  // the metric that a comparison shows beside it
  std::string runs_key = {};   // in JSON, of the figures of several runs; empty: `key`

  // What one answer adds. Error on invalid UTF-8, and where a text or the labels are not what the
  // metric needs. The figure is an Error where these counts have none.
  std::function<MetricCounts(const ScoredAnswer&, const MetricOptions&)> count = {};
  std::function<double(const MetricCounts&, const MetricOptions&)> figure = {};
  // Optional, for many counts of the same names, as interval_of() has them: reads the names once.
  // The result takes a count of 0 or more for each name and returns what `figure` returns.
  std::function<CountedFigure(const std::vector<std::string>& names)> figure_by_name = {};
  std::function<double(const Likelihood&)> of_likelihood = {};
  // An object with more than the figure, and its lines for a person; empty: the figure alone.
  std::function<nlohmann::json(const MetricCounts&, const MetricOptions&)> details = {};
  std::function<std::string(const nlohmann::json& details)> details_text = {};

  bool of_answers() const { return static_cast<bool>(count); }
  bool of_numbers() const { return needs == MetricNeeds::numbers; }
  bool of_scores() const { return needs == MetricNeeds::scores; }
  // Whether a validation has what the metric needs: it does not count bytes.
  bool of_validation() const { return needs != MetricNeeds::bytes; }
  bool of_texts() const { return needs == MetricNeeds::texts || needs == MetricNeeds::tokens; }
  std::string shown(double figure) const;  // "2.05 %"
  // The JSON value under the key: the details, or the figure. Error for a metric of a likelihood.
  nlohmann::json report(const MetricCounts& counts, const MetricOptions& options) const;
  // A report in lines; a mean is one over each `part`.
  std::string report_text(const nlohmann::json& report, std::string_view part = "token") const;
};

// The rows, in the order in which lists show them. A name with another number
// than hit@10 and ndcg@10, such as hit@7, has a row too, which is in no list.
const std::deque<Metric>& metric_table();
const Metric* find_metric(std::string_view name);   // null on an unknown name
const Metric& metric_named(std::string_view name);  // Error on an unknown name

// The names of the rows for which `takes` is true.
std::vector<std::string> metric_names(const std::function<bool(const Metric&)>& takes);

// The names of rows with any number from 1, which K stands for: "hit@K".
std::vector<std::string> numbered_metric_names();

// Adds a row, which all commands and settings then know. Error where the name is taken. Not to be
// called while another thread reads the table.
void register_metric(Metric metric);

// The counts of all answers to sources of those lengths. `is_stopped` is asked before each answer.
// Errors name the answer, from 1; Error, too, where is_stopped() is true.
MetricCounts count_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                           const MetricOptions& options, const LengthRange& lengths = {},
                           const std::function<bool()>& is_stopped = {});

// The figure of the same.
double measure_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                       const MetricOptions& options = {}, const LengthRange& lengths = {});

// From where to where a figure may be.
struct FigureInterval {
  double low = 0, high = 0;
};

// The figure's 95 % interval by the bootstrap (Efron 1979): 1,000 sets of as many answers, drawn
// with replacement, always the same draws; fewer sets, at least 200, of more than 5,000 answers.
// Sets that lack a figure do not count; returns none if fewer than 100 have one. Takes time in
// proportion to the number of answers, of which `count` reads each once.
std::optional<FigureInterval> interval_of(const Metric& metric,
                                          const std::vector<ScoredAnswer>& answers,
                                          const MetricOptions& options = {});

// The place of the first of `ranked`, the best first, that is right; none where there is no such.
std::optional<Rank> rank_among(const std::vector<std::string>& ranked,
                               const std::vector<std::string>& right);

// Adds each of the numbers to that of its name.
void add_counts(MetricCounts& sum, const MetricCounts& part);

// Calls `work` on answer i, counted from 0, and puts its number in front of the message when it
// fails.
void at_answer(size_t i, const std::function<void()>& work);

}  // namespace attend
