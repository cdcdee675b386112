#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/inference/model.h"
#include "attend/metrics/likelihood.h"
#include "attend/metrics/metric.h"

namespace attend {

// Called on the calling thread with the number of finished sources and of all sources. May call the
// model.
using Report = std::function<void(int64_t done, int64_t total)>;

// Best answers to examples, in the form that metrics read. Right labels have the form of the
// model's answers. For ranked items, answers have a rank instead of a text.
struct Evaluation {
  std::vector<ScoredAnswer> answers;  // one per example
  int64_t truncated = 0;              // sources longer than the model reads
  int64_t converted_to_grey = 0;      // sources with colour images that were read in grey
  int64_t cut = 0;                    // answers cut at the maximum length
  int64_t unread = 0;  // reference tokens of a tagger for source tokens that were cut off
  std::vector<ScoredAnswer> scores = {};  // result of class_scores(), for metrics of scores

  const std::vector<ScoredAnswer>& measured_by(const Metric& metric) const;
  std::vector<int64_t> source_lengths() const;  // in tokens
};

// Metric options for the model's answers: BLEU tokenises as 13a if the model tokenises texts,
// otherwise at white space; a tagger has one label per token.
MetricOptions metric_options(const Model& model);

// Reads the examples for an evaluation. `text`: the model's settings, except for its references.
// Errors as read_examples(), and if the data holds another graph than the model's or no test
// example.
std::vector<Example> test_examples(const Model& model, const PairFiles& files,
                                   const TextConfig& text, const Tell& tell = {},
                                   int64_t* bad = nullptr);

Evaluation evaluate(const Model& model, const std::vector<Example>& examples,
                    const SearchOptions& options, const Report& report = {});

// Scores for the second of a classifier's two labels, in the order of their bytes (0 before 1, no
// before yes). The answer is the probability of that label as text; the reference is 1 if the label
// is right, else 0. Error if the model does not have two labels.
std::vector<ScoredAnswer> class_scores(const Model& model, const std::vector<Example>& examples);

// Answers for the metric: the best answers, or class_scores() for a metric of scores.
std::vector<ScoredAnswer> measured_answers(const Metric& metric, const Model& model,
                                           const std::vector<Example>& examples);

// Negative log-likelihood of all targets. For ranked items and labels only targets seen in training
// count; for a masked language model only masked tokens. The end of a target counts as one byte,
// like the line break in a file. Error if the model's loss is NaN.
Likelihood likelihood(const Model& model, const std::vector<Example>& examples);

// Likelihood of a text by a language model.
struct TextLikelihood {
  Likelihood likelihood;   // tokens with at least half a context before them, except the first
  double window_loss = 0;  // nats per token, in consecutive windows of a full context
};
TextLikelihood likelihood_of_text(const Model& model, const std::string& text);

}  // namespace attend
