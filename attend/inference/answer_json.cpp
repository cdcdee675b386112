#include "attend/inference/answer_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "attend/base/utf8.h"
#include "attend/metrics/length_ranges.h"

namespace attend {
namespace {

using nlohmann::json;

json lengths_json(const Measurement& measurement) {
  const std::vector<int64_t> all = measurement.evaluation.source_lengths();
  json result = json::array();
  for (const int64_t length : std::set<int64_t>(all.begin(), all.end())) {
    json& one = result.emplace_back();
    one = {{"source_length", length}, {"examples", std::count(all.begin(), all.end(), length)}};
    for (const Metric* metric : measurement.metrics)
      if (metric->by_length == ByLength::each_length)
        one[metric->key] = measure_answers(*metric, measurement.evaluation.answers,
                                           measurement.options, {length, length});
  }
  return result;
}

// The curve of Bahdanau et al. 2015, fig. 2.
json ranges_json(const Measurement& measurement, const Metric& metric) {
  const std::vector<int64_t> lengths = measurement.evaluation.source_lengths();
  json result = json::array();
  for (const LengthRange& range : length_ranges(lengths)) {
    int64_t examples = 0;
    double total = 0;
    for (const int64_t length : lengths) {
      if (!range.holds(length)) continue;
      ++examples;
      total += static_cast<double>(length);
    }
    if (examples == 0) continue;
    result.push_back({{"first", range.first},
                      {"last", range.last},
                      {"mean", total / static_cast<double>(examples)},
                      {"examples", examples},
                      {metric.key, measure_answers(metric, measurement.evaluation.answers,
                                                   measurement.options, range)}});
  }
  return result;
}

// Ranges [begin, end], in characters, of the tokens read from the source; null for a token without
// a range.
json spans_json(const Model& model, const std::string& source) {
  json spans = json::array();
  const auto characters_before = [&](size_t place) {
    return character_count(std::string_view(source).substr(0, std::min(place, source.size())));
  };
  for (const SourceToken& token : model.tokens_read(source)) {
    json& span = spans.emplace_back();
    const auto [begin, end] = std::pair(token.place.begin, token.place.end);
    if (begin < end) span = {characters_before(begin), characters_before(end)};
  }
  return spans;
}

json label_json(const char* key, const Alternative& label) {
  return {{key, label.token}, {"probability", std::exp(label.log_probability)}};
}

json figures_json(const Likelihood& likelihood, bool with_bytes) {
  json result = {{"tokens", likelihood.tokens}};
  for (const Metric& metric : metric_table())
    if (metric.of_likelihood && (with_bytes || metric.needs != MetricNeeds::bytes))
      result[metric.key] = metric.of_likelihood(likelihood);
  return result;
}

}  // namespace

json answer_json(const Model& model, const std::string& source, const Answer& answer,
                 bool details) {
  json predictions = json::array();
  for (const Candidate& candidate : answer.candidates) {
    json& prediction = predictions.emplace_back();
    prediction = {{"target", candidate.text}};
    if (candidate.number)
      prediction["number"] = *candidate.number;
    else
      prediction.update({{"score", candidate.score},
                         {"log_probability", candidate.log_probability},
                         {"complete", candidate.complete}});
    if (candidate.span)
      prediction.update({{"start", candidate.span->begin}, {"end", candidate.span->end}});
    for (const Alternative& label : candidate.labels)
      prediction["labels"].push_back(label_json("label", label));
    if (!details) continue;
    prediction["tokens"] = model.answer_texts(candidate.tokens);
    if (!candidate.number) prediction["log_probabilities"] = candidate.log_probabilities;
    if (model.attends()) prediction["weights"] = candidate.weights;
  }
  json result = {{"source", source},
                 {"predictions", predictions},
                 {"cut", answer.truncated},
                 {"unknown", answer.unknown}};
  if (!answer.error.empty()) result["error"] = answer.error;
  if (!details) return result;
  result["source_tokens"] = model.source_texts(answer.source);
  // Without an imported tokenizer the name of a token is its text.
  if (model.text().source_units == tokenizer_units && !answer.source.empty())
    result["source_spans"] = spans_json(model, source);
  return result;
}

json classification_json(const Model& model, const std::string& source, const Answer& answer,
                         int64_t maximum) {
  json predictions = json::array();
  const std::vector<std::string> source_tokens = model.source_texts(answer.source);
  for (const Candidate& candidate : answer.candidates) {
    for (const Alternative& label : candidate.labels)
      if (std::ssize(predictions) < maximum) predictions.push_back(label_json("target", label));
    for (size_t i = 0; candidate.labels.empty() && i < candidate.tokens.size(); ++i) {
      json& prediction = predictions.emplace_back();
      prediction = {{"target", candidate.tokens[i]},
                    {"probability", std::exp(candidate.log_probabilities[i])}};
      if (model.answer_kind().is_tags()) prediction["source_token"] = source_tokens[i];
    }
  }
  return {{"source", source},
          {"predictions", predictions},
          {"cut", answer.truncated},
          {"unknown", answer.unknown}};
}

json Measurement::report(const Metric& metric) const {
  return metric.of_answers()
             ? metric.report(count_answers(metric, evaluation.measured_by(metric), options),
                             options)
             : json(metric.of_likelihood(likelihood));
}

std::optional<FigureInterval> Measurement::interval(const Metric& metric) const {
  if (!metric.has_interval) return std::nullopt;
  return interval_of(metric, evaluation.measured_by(metric), options);
}

json measurement_json(const Measurement& measurement) {
  json result = {
      {"examples", measurement.counts.examples},     {"sources", measurement.counts.sources},
      {"references", measurement.counts.references}, {"beam", measurement.beam},
      {"decode_seconds", measurement.seconds},       {"by_length", lengths_json(measurement)}};
  if (measurement.likelihood.tokens > 0) {
    result["known_loss"] = measurement.likelihood.known().loss();
    result["unknown_tokens"] = measurement.likelihood.unknown;
  }
  for (const Metric* metric : measurement.metrics) {
    result[metric->key] = measurement.report(*metric);
    if (const auto interval = measurement.interval(*metric))
      result[metric->key + "_interval"] = {interval->low, interval->high};
    if (metric->by_length == ByLength::ranges)
      result[metric->key + "_by_length"] = ranges_json(measurement, *metric);
  }
  for (const Metric* metric : measurement.missing) result[metric->key] = nullptr;
  if (!measurement.popular.answers.empty()) {
    result["misses"] = {{"unknown", measurement.misses.unknown}, {"seen", measurement.misses.seen}};
    for (const Metric* metric : measurement.metrics)
      if (metric->of_answers())
        result["popularity"][metric->key] =
            measure_answers(*metric, measurement.popular.answers, measurement.options);
  }
  if (measurement.evaluation.unread > 0) result["unread_tokens"] = measurement.evaluation.unread;
  if (!measurement.labels.answers.empty()) result["confusion"] = measurement.labels.answers;
  return result;
}

json likelihood_json(const TextLikelihood& text) {
  json result = figures_json(text.likelihood, /*with_bytes=*/true);
  result["unknown_tokens"] = text.likelihood.unknown;
  result["known_loss"] = text.likelihood.known().loss();
  result["bytes"] = text.likelihood.bytes;
  result["window_loss"] = text.window_loss;
  return result;
}

json likelihood_json(const Likelihood& hidden) {
  json result = figures_json(hidden, false);
  result["asked_tokens"] = hidden.asked;
  result["unknown_tokens"] = hidden.unknown;
  return result;
}

}  // namespace attend
