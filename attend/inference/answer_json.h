#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"
#include "attend/inference/ranking.h"
#include "attend/metrics/label_counts.h"
#include "attend/metrics/metric.h"

namespace attend {

// Answers and what is measured of them as JSON: keys in snake_case, rates as fractions.

// {source, predictions: [{target, score, log_probability, complete}], cut, unknown}, with error
// where the source could not be read; a prediction that is a number has target and number. With
// `details` also source_tokens, and of each prediction
// tokens, log_probabilities and, where the model attends, weights.
nlohmann::json answer_json(const Model& model, const std::string& source, const Answer& answer,
                           bool details);

// {source, predictions: [{target, probability}], cut, unknown} of an answer to a model of labels,
// which was searched for with a beam; of a tagger a prediction for each token of the source, which
// also has source_token.
nlohmann::json classification_json(const Model& model, const std::string& source,
                                   const Answer& answer);

// What is measured of a model on examples.
struct Measurement {
  std::vector<const Metric*> metrics;
  MetricOptions options = {};
  ExampleCounts counts = {};
  Evaluation evaluation = {};
  Evaluation popular = {};     // what the most frequent items would have gained, of ranked items
  RankMisses misses = {};      // for rankings
  LabelCounts labels = {};     // of a model that answers labels
  Likelihood likelihood = {};  // no tokens: answers are numbers, which have none
  int64_t beam = 1;
  double seconds = 0;  // of decoding

  nlohmann::json report(const Metric& metric) const;
  std::optional<FigureInterval> interval(const Metric& metric) const;  // where the row has one
};

// {the report of each metric under its key, known_loss, unknown_tokens, examples, sources,
// references, beam, decode_seconds, by_length: [{source_length, examples, figures}]}. A metric
// that has an interval has KEY_interval: [low, high]; one whose by_length is `ranges` also has
// KEY_by_length: [{first, last, mean, examples, KEY}]; for labels there is confusion: {right label:
// {answer: examples}}; for ranked items popularity: {the report of each metric of a rank under its
// key} and misses: {unknown, seen}. A model of numbers has neither known_loss nor unknown_tokens.
nlohmann::json measurement_json(const Measurement& measurement);

// The figures of every metric of a likelihood, tokens, unknown_tokens, known_loss and bytes; with
// window_loss.
nlohmann::json likelihood_json(const TextLikelihood& text);
// The figures of every metric that needs no bytes, and tokens.
nlohmann::json likelihood_json(const Likelihood& hidden);

}  // namespace attend
