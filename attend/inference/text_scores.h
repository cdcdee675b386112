#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attend/data/units.h"
#include "attend/metrics/metric.h"

namespace attend {

// How answers that any program gave are measured against references.
struct TextScoring {
  std::vector<std::string> metrics = {"bleu"};  // names of metrics of answers
  MetricOptions options = {};
  // What token_error counts (character, space), accuracy compares (line), or ranks (space).
  Units units = Units::space;
};

// What is measured of texts with their references, as JSON. Error on an unknown metric or option,
// and, naming the answer, on a text that a metric cannot read.
class TextScores {
 public:
  TextScores(const TextScoring& scoring, std::vector<ScoredAnswer> answers);

  const std::vector<const Metric*>& metrics() const { return metrics_; }
  // {examples, the report of each metric under its key}. `is_stopped` is asked before each answer
  // that is counted; true ends the work with an Error.
  nlohmann::json all(const std::function<bool()>& is_stopped = {}) const;
  // {the figure of each metric under its key} of one answer alone; BLEU with effective order.
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
