#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attend/metrics/metric.h"
#include "attend/text/units.h"

namespace attend {

// Metrics for answers of any program against references.
struct TextScoring {
  std::vector<std::string> metrics = {"bleu"};  // names of metrics of answers
  MetricOptions options = {};
  // Units that token_error counts (character, space), accuracy compares (line), or rankings list
  // (space).
  Units units = Units::space;
};

// Scores of texts against their references, as JSON. Error on an unknown metric or option. Error,
// naming the answer, on a text that a metric cannot read.
class TextScores {
 public:
  TextScores(const TextScoring& scoring, std::vector<ScoredAnswer> answers);

  const std::vector<const Metric*>& metrics() const { return metrics_; }
  // {examples, report of each metric under its key}. `is_stopped` is called before each answer;
  // true ends the work with an Error.
  nlohmann::json all(const std::function<bool()>& is_stopped = {}) const;
  // {figure of each metric under its key} of one answer; BLEU with effective order.
  nlohmann::json each(size_t answer) const;
  size_t size() const { return answers_.size(); }

 private:
  const std::vector<ScoredAnswer>& measured_by(const Metric& metric) const;

  std::vector<const Metric*> metrics_;
  MetricOptions options_;
  std::vector<ScoredAnswer> answers_;
  std::vector<ScoredAnswer> labels_;  // the answers as labels, if a metric compares labels
};

}  // namespace attend
