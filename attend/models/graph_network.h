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

// Settings of a network over a graph; the defaults follow GAT for a small graph (Velickovic et al.
// 2018, 3.3).
struct GraphNetworkConfig {
  int64_t layers = 2;
  int64_t depth = 64;           // depth of a node's vector between layers, all heads together
  int64_t heads = 8;            // heads of each layer except the last
  int64_t output_heads = 1;     // heads of the last layer, each with all labels; they are averaged
  int64_t attention_depth = 1;  // hidden units of additive scores: 1 is GAT, more are GATv2
  std::string score = "additive_leaky_relu";
  std::string normaliser = "softmax";
  double input_dropout = 0.6;   // dropout of the input of each layer
  double weight_dropout = 0.6;  // dropout of the edge weights

  Settings settings();  // keys model.*
  void check() const;   // Error if settings contradict each other
  AttentionChoices choices() const;
  int64_t maximum_source_length() const { return int64_t{1} << 20; }
  std::string no_weights_reason() const { return "model.layers = 0"; }
};

// A label for a node of a graph. Sparse node features are mapped to vectors. In each layer of
// GraphAttention, a node reads itself and its neighbours, with ELU between layers. The last layer
// gives scores of labels, or one number.
//
// A source is one token, the node; the answer is one token without EOS. A source may also list the
// node and further nodes; the answer then uses only the listed nodes. Explanations use this to
// leave nodes out. The graph belongs to the network, which computes all nodes at once for any
// batch.
class GraphNetwork : public PairNetwork {
 public:
  // Any TargetShape is supported. Error if a setting does not fit, or if the source has no
  // graph.
  GraphNetwork(const GraphNetworkConfig& config, const SourceShape& source,
               const TargetShape& target);

  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  // Input of the last layer, [B, S, depth].
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  // The source and all nodes that are at most L edges away from it, the nearest first. L: the
  // number of layers.
  std::vector<int64_t> with_surroundings(std::vector<int64_t> source) const override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  // Caches the scores of all nodes; supports only float32.
  bool pack(WeightType weights) override;
  bool packs_objective() const override { return true; }
  // Weights of a step: the share of each source node, propagated through the layers by the mean
  // weights of the heads.
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
  at::Tensor node_weights(const at::Tensor& source);
  at::Tensor nodes_of(const at::Tensor& source) const;

  std::shared_ptr<const NodeGraph> graph_;
  TargetShape target_;
  double input_dropout_;
  at::Tensor features_;       // [features, heads * head depth of the first layer]
  std::vector<Linear> maps_;  // linear maps of the layers after the first
  std::vector<std::shared_ptr<GraphAttention>> layers_;
  std::once_flag seen_once_;
  Scope seen_;         // neighbours in the whole graph
  at::Tensor packed_;  // [nodes, outputs]; undefined until pack()
};

}  // namespace attend
