#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attend/base/settings.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_input.h"
#include "attend/nn/graph_attention.h"
#include "attend/nn/linear.h"

namespace attend {

// The settings of a network over a graph; the defaults are those of GAT for a small graph
// (Velickovic et al. 2018, 3.3).
struct GraphNetworkConfig {
  int64_t layers = 2;
  int64_t depth = 64;           // of a node's vector between layers, all heads together
  int64_t heads = 8;            // of each layer but the last
  int64_t output_heads = 1;     // of the last, each with all labels; their mean counts
  int64_t attention_depth = 1;  // hidden units of additive scores: 1 is GAT, more are GATv2
  std::string score = "additive_leaky_relu";
  std::string normaliser = "softmax";
  double input_dropout = 0.6;   // of what a layer reads
  double weight_dropout = 0.6;  // of the weights of edges

  Settings settings();  // keys model.*
  void check() const;   // Error when they do not fit each other
  AttentionChoices choices() const;
  int64_t maximum_source_length() const { return int64_t{1} << 20; }
  std::string why_no_weights() const { return "model.layers = 0"; }
};

// A label for a node of a graph: features of nodes, which are sparse, are mapped to vectors, layers
// of GraphAttention let each node read itself and those that it sees, with ELU between them, and
// the last layer gives scores of labels, or one number.
//
// A network from pairs answers; a source is one token, the node, and its answer one token, which no
// EOS follows. A source of more tokens, of a node and others, is answered as if these were all that
// there are: what explains an answer may so leave nodes out. The graph belongs to the network,
// which computes all nodes at once, whatever the batch.
class GraphNetwork : public PairNetwork {
 public:
  // `target_tokens` may be number_targets. Error when a setting does not fit, and where the source
  // is of no graph.
  GraphNetwork(const GraphNetworkConfig& config, const SourceShape& source, int64_t target_tokens);

  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  // What the last layer reads, [B, S, depth].
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  // The nodes of as many steps around the source as there are layers, the nearest first.
  std::vector<int64_t> with_surroundings(std::vector<int64_t> source) const override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  // Keeps the scores of all nodes; as float32 alone.
  bool pack(WeightType weights) override;
  bool packs_objective() const override { return true; }
  // Weights of its steps: the shares of the nodes of a source, as the means of the heads spread
  // them from layer to layer.
  bool attends() const override { return true; }

 private:
  struct State;
  struct Nodes;

  Nodes whole();
  Nodes chosen(const at::Tensor& source) const;
  at::Tensor read(const Nodes& nodes, const Pass& pass) const;
  at::Tensor top_input(const Nodes& nodes, const Pass& pass);
  at::Tensor scores_of(const Nodes& nodes, const Pass& pass);
  at::Tensor scores(const at::Tensor& source, const Pass& pass);
  at::Tensor answer_scores(const at::Tensor& source, const Pass& pass,
                           c10::optional<at::ScalarType> type = {});
  at::Tensor node_weights(const at::Tensor& source);
  at::Tensor nodes_of(const at::Tensor& source) const;

  std::shared_ptr<const NodeGraph> graph_;
  bool answers_numbers_;
  double input_dropout_;
  at::Tensor features_;       // [features, heads * head depth of the first layer]
  std::vector<Linear> maps_;  // of the layers behind the first
  std::vector<std::shared_ptr<GraphAttention>> layers_;
  std::once_flag seen_once_;
  Scope seen_;         // by all nodes
  at::Tensor packed_;  // [nodes, outputs]; undefined until pack()
};

}  // namespace attend
