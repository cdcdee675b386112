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

// Checks the targets of a model that answers labels: one label per source, or per token of it.
// Error if their number is another, or if a label is not among those that the model was made with.
// If `remark` is given, it is called once with what there is of such labels instead of the Error;
// no answer can equal them. `name` is the file's, for the messages. Returns whether the model knows
// one of the labels, and true if there are none.
bool check_labels(const PairModel& model, const TokenisedExamples& tokenised,
                  const std::string& name, const Tell& remark = nullptr);

}  // namespace attend
