#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attend/data/metrics.h"
#include "attend/inference/model.h"

namespace attend {

// Is told how many sources are answered of how many, from one thread at a time.
using Report = std::function<void(int64_t done, int64_t total)>;

// Errors of the best answers to the examples.
struct Evaluation {
  ErrorCounts errors;
  std::map<int64_t, ErrorCounts> by_length;  // of the source, in tokens
  std::vector<int64_t> lengths;              // of each source
  std::vector<std::string> answers;          // to each example
  int64_t truncated = 0;                     // sources that are longer than the model reads
  int64_t cut = 0;                           // answers that are cut at the longest length
};

Evaluation evaluate(Predictor& predictor, const PairModel& model,
                    const std::vector<Example>& examples, const SearchOptions& options,
                    const Report& report = {});
Evaluation evaluate(const Model& model, const std::vector<Example>& examples,
                    const SearchOptions& options, const Report& report = {});

// The negative log-likelihood of all targets. The end of a target counts as a byte, as the line
// break does that ends it in a file.
Likelihood likelihood(const Model& model, const std::vector<Example>& examples);

// The same of a text, by a language model.
struct TextLikelihood {
  Likelihood likelihood;   // each token with half a context or more in front, but for the first
  double window_loss = 0;  // nats a token, in windows that fill the context one after another
};
TextLikelihood likelihood_of_text(const Model& model, const std::string& text);

// The examples' targets as the model writes them: a label in the form in which it answers.
std::vector<std::vector<std::string>> references(const Model& model,
                                                 const std::vector<Example>& examples);

}  // namespace attend
