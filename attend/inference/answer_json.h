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

// Answers and measurements as JSON: keys in snake_case, rates as fractions.

// {source, predictions: [{target, score, log_probability, complete}], cut, unknown}, with `error`
// if the source could not be read. A prediction of a number has target and number, of a set of
// labels also labels: [{label, probability}], all and the most probable first. A span also has its
// start and end in the second text, in characters, and its probability as score. `details` adds
// source_tokens, source_spans if the tokenizer was imported, and per prediction tokens,
// log_probabilities (not for numbers) and, if the model attends, weights.
nlohmann::json answer_json(const Model& model, const std::string& source, const Answer& answer,
                           bool details);

// {source, predictions: [{target, probability}], cut, unknown} for an answer of a model of labels,
// found by beam search. A tagger has one prediction per source token, with source_token; a model of
// sets of labels has the `maximum` most probable labels.
nlohmann::json classification_json(const Model& model, const std::string& source,
                                   const Answer& answer, int64_t maximum);

// Measurements of a model on examples.
struct Measurement {
  std::vector<const Metric*> metrics;
  std::vector<const Metric*> missing = {};  // without a figure for these answers
  MetricOptions options = {};
  ExampleCounts counts = {};
  Evaluation evaluation = {};
  Evaluation popular = {};     // ranking by popularity, for ranked items
  RankMisses misses = {};      // for rankings
  LabelCounts labels = {};     // for models that answer labels
  Likelihood likelihood = {};  // lacks tokens if answers are numbers
  int64_t beam = 1;
  double seconds = 0;  // decoding time

  nlohmann::json report(const Metric& metric) const;
  std::optional<FigureInterval> interval(
      const Metric& metric) const;  // empty if the metric lacks one
};

// {report of each metric under its key, null if it is missing, known_loss, unknown_tokens,
// examples, sources, references, beam, decode_seconds, by_length: [{source_length, examples,
// figures}]}. Further keys, if they apply: KEY_interval: [low, high]; KEY_by_length: [{first, last,
// mean, examples, KEY}] for metrics by ranges of length; unread_tokens for taggers; confusion:
// {right label: {answer: examples}} for labels; for ranked items popularity: {report of each
// ranking metric under its key} and misses: {unknown, seen}. Models of numbers lack known_loss and
// unknown_tokens.
nlohmann::json measurement_json(const Measurement& measurement);

// Figures of all likelihood metrics, tokens, unknown_tokens, known_loss, bytes and window_loss.
nlohmann::json likelihood_json(const TextLikelihood& text);
// Figures of the likelihood metrics that need no bytes, tokens, asked_tokens and unknown_tokens.
nlohmann::json likelihood_json(const Likelihood& hidden);

}  // namespace attend
