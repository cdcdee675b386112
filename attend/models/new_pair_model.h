#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/data/node_graph.h"
#include "attend/models/pair_model.h"

namespace attend {

// How often each token occurs, for making vocabularies.
struct TokenCounts {
  WordCounts source, target;
  // Whose nodes the sources are, in the order of falling counts; null: of none.
  std::shared_ptr<const NodeGraph> graph = nullptr;

  // The nodes of that graph, by their names.
  void add_graph(const SplitData& nodes);
  void add(const Example& example, const TextCodecs& codecs);
  void add_text(const std::string& text, const TextCodec& codec);
};

// Codes as `text` names them, vocabularies from the examples and a new network. Error when a
// setting does not fit.
PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenisedExamples& tokenised);
PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const std::vector<Example>& examples);
PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenCounts& counts);

// Error where the type of model does not answer numbers, or texts are read in ways that have none.
void check_number_targets(const TextConfig& text, const ModelConfig& model);

// What PairFiles::check is where such a model answers labels, so that a line of another number of
// labels than it answers is a bad line; null where it answers none.
PairCheck label_check(const TextConfig& text, const ModelConfig& model);

// Error where the model answers labels and a target is not of those that it was made with, one for
// a source or one for each of its tokens; `name` is the file's, for the message.
void check_labels(const PairModel& model, const TokenisedExamples& tokenised,
                  const std::string& name);

}  // namespace attend
