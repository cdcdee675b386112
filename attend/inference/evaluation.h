#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/inference/model.h"
#include "attend/metrics/likelihood.h"
#include "attend/metrics/metric.h"

namespace attend {

// Takes the number of answered sources and of all, on the calling thread. It may call the model.
using Report = std::function<void(int64_t done, int64_t total)>;

// The best answers to examples, as metrics take them. A right label has the form in which the model
// answers it. Where items are ranked, answers have a rank in place of texts.
struct Evaluation {
  std::vector<ScoredAnswer> answers;  // to each example
  int64_t truncated = 0;              // sources that are longer than the model reads
  int64_t greyed = 0;                 // sources with images in colour, read in grey
  int64_t cut = 0;                    // answers that are cut at the longest length
  int64_t unread = 0;  // tokens of a tagger's references whose source tokens are cut off
  std::vector<ScoredAnswer> scores = {};  // as class_scores() tells them; where metrics need such

  const std::vector<ScoredAnswer>& measured_by(const Metric& metric) const;
  std::vector<int64_t> source_lengths() const;  // in tokens
};

// How answers of the model are measured: tokenised text has its tokens between white space, and a
// tagger a label per token.
MetricOptions metric_options(const Model& model);

// Reads what a model is evaluated on, as `text` says, which is the model's but for its references.
// Errors as read_examples; also if data of a graph holds another one than the model, which reads
// its own, and if no example is for a test.
std::vector<Example> test_examples(const Model& model, const PairFiles& files,
                                   const TextConfig& text, const Tell& tell = {},
                                   int64_t* bad = nullptr);

Evaluation evaluate(const Model& model, const std::vector<Example>& examples,
                    const SearchOptions& options, const Report& report = {});

// How much a classifier of two labels speaks for the second of them, in the order of their bytes
// (1 behind 0, yes behind no): its probability as a text, and the reference 1 where the label is
// that one, else 0. Error of another model.
std::vector<ScoredAnswer> class_scores(const Model& model, const std::vector<Example>& examples);

// What a metric of answers measures of those examples: the best answers, or class_scores().
std::vector<ScoredAnswer> measured_answers(const Metric& metric, const Model& model,
                                           const std::vector<Example>& examples);

// The negative log-likelihood of all targets; of ranked items and of labels, of those that were in
// training; of a masked language model, of the tokens that are asked for. The end of a target
// counts as a byte, like the line break at its end in a file. Error if the model's loss is NaN.
Likelihood likelihood(const Model& model, const std::vector<Example>& examples);

// The same of a text, by a language model.
struct TextLikelihood {
  Likelihood likelihood;   // each token with half a context or more in front, but for the first
  double window_loss = 0;  // nats per token, in windows that fill the context one after another
};
TextLikelihood likelihood_of_text(const Model& model, const std::string& text);

}  // namespace attend
