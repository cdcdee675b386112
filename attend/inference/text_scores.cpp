#include "attend/inference/text_scores.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

void split_answers(std::vector<ScoredAnswer>& answers, Units units) {
  for (size_t i = 0; i < answers.size(); ++i)
    at_answer(i, [&] {
      ScoredAnswer& answer = answers[i];
      for (const std::string& reference : answer.references)
        answer.reference_tokens.push_back(split_units(reference, units));
      answer.tokens = split_units(answer.text, units);
    });
}

// The answers as labels, in the form that readers of training data give them.
std::vector<ScoredAnswer> labels_of(const std::vector<ScoredAnswer>& answers) {
  std::vector<ScoredAnswer> labels;
  labels.reserve(answers.size());
  for (size_t i = 0; i < answers.size(); ++i)
    at_answer(i, [&] {
      ScoredAnswer& label = labels.emplace_back();
      label.text = join_units(split_units(answers[i].text, Units::line), Units::line);
      for (const std::string& reference : answers[i].references)
        label.references.push_back(join_units(split_units(reference, Units::line), Units::line));
    });
  return labels;
}

// Ranks the right token among an answer's tokens, which are in order of their ranking, best first.
void place_answers(std::vector<ScoredAnswer>& answers) {
  for (size_t i = 0; i < answers.size(); ++i)
    at_answer(i, [&] {
      std::vector<std::string> right;
      for (const auto& tokens : answers[i].reference_tokens) {
        if (tokens.size() != 1)
          fail("a reference has {} tokens; give one, the right item", tokens.size());
        right.push_back(tokens[0]);
      }
      answers[i].rank = rank_among(answers[i].tokens, right);
    });
}

}  // namespace

TextScores::TextScores(const TextScoring& scoring, std::vector<ScoredAnswer> answers)
    : options_(scoring.options), answers_(std::move(answers)) {
  options_.bleu.check();
  for (const std::string& name : scoring.metrics) {
    metrics_.push_back(&metric_named(name));
    if (!metrics_.back()->of_answers()) fail("[score] {} cannot be computed from answers", name);
  }
  const auto any_needs = [&](MetricNeeds needs) {
    return std::any_of(metrics_.begin(), metrics_.end(),
                       [&](const Metric* metric) { return metric->needs == needs; });
  };
  const bool ranked = any_needs(MetricNeeds::rank);
  if (ranked || any_needs(MetricNeeds::tokens)) split_answers(answers_, scoring.units);
  if (ranked) place_answers(answers_);
  if (std::any_of(metrics_.begin(), metrics_.end(),
                  [](const Metric* metric) { return metric->compares_labels; }))
    labels_ = labels_of(answers_);
}

const std::vector<ScoredAnswer>& TextScores::measured_by(const Metric& metric) const {
  return metric.compares_labels ? labels_ : answers_;
}

nlohmann::json TextScores::all(const std::function<bool()>& is_stopped) const {
  nlohmann::json figures = {{"examples", answers_.size()}};
  for (const Metric* metric : metrics_)
    figures[metric->key] = metric->report(
        count_answers(*metric, measured_by(*metric), options_, {}, is_stopped), options_);
  return figures;
}

nlohmann::json TextScores::each(size_t answer) const {
  MetricOptions sentence_options = options_;
  sentence_options.bleu.effective_order = true;
  nlohmann::json figures;
  for (const Metric* metric : metrics_)
    figures[metric->key] =
        measure_answers(*metric, {measured_by(*metric)[answer]}, sentence_options);
  return figures;
}

}  // namespace attend
