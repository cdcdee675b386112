#pragma once

#include <string>
#include <vector>

#include "attend/data/text_config.h"
#include "attend/inference/evaluation.h"

namespace attend {

// What validation measures, by which the best weights are chosen: train.metric.
struct ValidationMetric {
  std::string name;  // "token_error"
  std::string words;
  bool higher_is_better;
  bool is_share;  // of 1, shown in per cent
  bool decodes;   // its figure is of answers; otherwise it is the loss

  // What the answers to some of the examples count: whole numbers whose sums over all of them have
  // the figure. Error where answers say nothing of it: the loss.
  std::vector<double> counts(const Evaluation& answers, const std::vector<Example>& examples,
                             const TextConfig& text) const;
  double figure(const std::vector<double>& counts, const TextConfig& text) const;

  std::string shown(double figure) const;  // "2.05 %"
  std::string key() const;                 // "valid_token_error_rate", of JSON
};

// Null on an unknown name, which no train.metric is.
const ValidationMetric* find_validation_metric(const std::string& name);

}  // namespace attend
