#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/data/node_graph.h"
#include "attend/models/pair_model.h"

namespace attend {

// Number of occurrences of each token, for building vocabularies.
struct TokenCounts {
  WordCounts source, target;
  // The graph of the source nodes, in order of decreasing counts; may be null.
  std::shared_ptr<const NodeGraph> graph = nullptr;

  // Adds the nodes of the graph by name.
  void add_graph(const SplitData& nodes);
  void add(const Example& example, const TextCodecs& codecs);
  void add_text(const std::string& text, const TextCodec& codec);
};

// Builds codes from `text`, vocabularies from the examples and a new network. Error if a setting
// does not fit.
PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenisedExamples& tokenised);
PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const std::vector<Example>& examples);
PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenCounts& counts);

// PairFiles::check for a model that answers labels: a line with a wrong number of labels is a bad
// line. Null for other models.
PairCheck label_check(const TextConfig& text, const ModelConfig& model);

// Checks the targets of a model that answers labels: one label per source, or per source token.
// Error if the number of labels is wrong, or if a label is unknown to the model. With `remark`,
// unknown labels cause no Error; `remark` is called once with a summary of them, as no answer can
// equal them. `name` is the file name in messages. Returns false only if the targets have labels
// and the model's vocabulary lacks all of them.
bool check_labels(const PairModel& model, const TokenisedExamples& tokenised,
                  const std::string& name, const Tell& remark = nullptr);

}  // namespace attend
