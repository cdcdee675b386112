#include "attend/models/graph_network.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attend/base/error.h"
#include "attend/decode/batch_invariance.h"
#include "attend/models/labels-inl.h"
#include "attend/nn/attention_trace.h"
#include "attend/nn/dropout.h"
#include "attend/nn/multi_head_state.h"

namespace attend {
namespace {

using at::Tensor;
using internal::first_label;

// Nodes are the source tokens after the fixed tokens.
constexpr int64_t first_node = Vocabulary::unknown + 1;

// Concatenated lists, built one after another.
struct Lists {
  std::vector<int64_t> offsets = {0}, numbers;

  void end_list() { offsets.push_back(std::ssize(numbers)); }
  Tensor offsets_tensor() const { return at::tensor(offsets, at::kLong); }
};

// The list of one node in tensors of NodeGraph.
struct List {
  const int64_t *first, *last;

  List(const Tensor& offsets, const Tensor& numbers, int64_t node)
      : first(numbers.data_ptr<int64_t>() + offsets.data_ptr<int64_t>()[node]),
        last(numbers.data_ptr<int64_t>() + offsets.data_ptr<int64_t>()[node + 1]) {}
  const int64_t* begin() const { return first; }
  const int64_t* end() const { return last; }
};

Scope seen_by_all(const NodeGraph& graph) {
  Lists seen;
  for (int64_t node = 0; node < graph.node_count(); ++node) {
    const List others(graph.offsets, graph.neighbours, node);
    const int64_t* after = std::lower_bound(others.begin(), others.end(), node);
    seen.numbers.insert(seen.numbers.end(), others.begin(), after);
    seen.numbers.push_back(node);
    seen.numbers.insert(seen.numbers.end(), after, others.end());
    seen.end_list();
  }
  return edges(seen.offsets_tensor(), at::tensor(seen.numbers, at::kLong));
}

// Adds, per position of one source, the positions of itself and of its neighbours.
void add_seen_places(const NodeGraph& graph, const int64_t* nodes, int64_t count, Lists& seen) {
  std::unordered_map<int64_t, std::vector<int64_t>> places;
  for (int64_t place = 0; place < count; ++place)
    if (nodes[place] >= 0) places[nodes[place]].push_back(place);
  for (int64_t place = 0; place < count; ++place) {
    const auto own = static_cast<std::ptrdiff_t>(seen.numbers.size());
    seen.numbers.push_back(place);
    if (nodes[place] >= 0)
      for (const int64_t other : List(graph.offsets, graph.neighbours, nodes[place]))
        if (const auto found = places.find(other); found != places.end())
          seen.numbers.insert(seen.numbers.end(), found->second.begin(), found->second.end());
    std::sort(seen.numbers.begin() + own, seen.numbers.end());
    seen.end_list();
  }
}

// exp() returns the same bits at every index of a tensor; LibTorch's elu() does not.
Tensor exponential_linear(const Tensor& x) { return at::where(x > 0, x, x.clamp_max(0).exp() - 1); }

}  // namespace

struct GraphNetwork::Nodes {
  int64_t batch = 0, count = 0;
  Tensor feature_offsets, features, feature_values;  // as in NodeGraph, for batch * count nodes
  Scope seen;
};

AttentionChoices GraphNetworkConfig::choices() const {
  return {.score = score, .normaliser = normaliser};
}

Settings GraphNetworkConfig::settings() {
  std::vector<std::string> scores;
  for (const ScoreRow& row : score_table()) scores.emplace_back(row.name);
  return {
      {"model.layers", &layers, "number of layers; each reads the neighbours", 1, 64},
      {"model.depth", &depth, "depth of a node's vector between layers, over all heads", 1, 65536},
      {"model.heads", &heads, "number of heads of each layer except the last", 1, 1024},
      {"model.output_heads", &output_heads, "number of heads of the last layer, which are averaged",
       1, 1024},
      {"model.attention_depth", &attention_depth,
       "number of hidden units of additive scores: 1, as in GAT, or more, as in GATv2", 1, 65536},
      {"model.score", &score, "score between a node and its neighbours", {}, {}, scores},
      {"model.normaliser", &normaliser, "normaliser of the scores, such as sparsemax"},
      {"model.input_dropout", &input_dropout,
       "dropout probability of features and inputs of later layers", 0, 0.95},
      {"model.weight_dropout", &weight_dropout, "dropout probability of attention weights of edges",
       0, 0.95}};
}

void GraphNetworkConfig::check() const {
  check_choices(choices());
  if (depth % heads != 0)
    fail("model.depth is {}, which {} heads (model.heads) do not divide; make it a multiple", depth,
         heads);
  const ScoreRow& row = score_row(score);
  const NormaliserRow& weights = Normaliser(normaliser).row();
  if (row.map_past != nullptr || !row.family)
    fail("model.score is {}, which needs positions of a sequence; take additive_leaky_relu", score);
  if (weights.sequential || weights.running_sums || weights.order_dependent ||
      weights.training != Training::gradient)
    fail(
        "model.normaliser is {}, which does not support edges of a graph; take softmax or "
        "sparsemax",
        normaliser);
}

GraphNetwork::GraphNetwork(const GraphNetworkConfig& config, const SourceShape& source,
                           const TargetShape& target)
    : graph_(source.as<NodeForm>() == nullptr ? nullptr : source.as<NodeForm>()->graph),
      target_(target),
      input_dropout_(config.input_dropout) {
  config.check();
  if (graph_ == nullptr)
    fail("model.type is graph, and data.format is not; set data.format = graph");
  const int64_t outputs = target.is_number() ? 1 : target.tokens - first_label;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const bool last = layer + 1 == config.layers;
    const int64_t heads = last ? config.output_heads : config.heads;
    const int64_t head_depth = last ? outputs : config.depth / config.heads;
    if (layer == 0) {
      features_ = register_parameter("features",
                                     torch::empty({graph_->feature_count(), heads * head_depth}));
      torch::nn::init::xavier_uniform_(features_);
    } else {
      maps_.push_back(register_module(
          "map" + std::to_string(layer + 1),
          Linear(torch::nn::LinearOptions(config.depth, heads * head_depth).bias(false))));
      torch::nn::init::xavier_uniform_(maps_.back()->weight);
    }
    layers_.push_back(register_module("layer" + std::to_string(layer + 1),
                                      std::make_shared<GraphAttention>(GraphAttentionConfig{
                                          .heads = heads,
                                          .head_depth = head_depth,
                                          .attention_depth = config.attention_depth,
                                          .choices = config.choices(),
                                          .averages = last,
                                          .dropout = config.weight_dropout})));
  }
}

// Node numbers [B, S]; -1 for tokens that are not nodes.
Tensor GraphNetwork::nodes_of(const Tensor& source) const {
  if (source.is_floating_point()) fail("[graph] got frames; this network reads nodes");
  Tensor nodes = (source.cpu() - first_node).clamp_min(-1).contiguous();
  if (nodes.numel() > 0 && nodes.max().item<int64_t>() >= graph_->node_count())
    fail("[graph] a source holds token {}; there are {} nodes", source.max().item<int64_t>(),
         graph_->node_count());
  return nodes;
}

GraphNetwork::Nodes GraphNetwork::whole() {
  std::call_once(seen_once_, [&] { seen_ = seen_by_all(*graph_); });
  return {
      1,    graph_->node_count(), graph_->feature_offsets, graph_->features, graph_->feature_values,
      seen_};
}

GraphNetwork::Nodes GraphNetwork::chosen(const Tensor& source) const {
  const Tensor nodes = nodes_of(source);
  const int64_t batch = nodes.size(0), count = nodes.size(1);
  const auto* all = nodes.data_ptr<int64_t>();
  const auto* starts = graph_->feature_offsets.data_ptr<int64_t>();
  Lists seen, features;
  std::vector<int64_t> offsets;
  for (int64_t row = 0; row < batch; ++row) {
    add_seen_places(*graph_, all + row * count, count, seen);
    offsets.insert(offsets.end(), seen.offsets.end() - count - 1, seen.offsets.end());
  }
  for (int64_t i = 0; i < batch * count; ++i) {
    if (all[i] >= 0)
      for (int64_t place = starts[all[i]]; place < starts[all[i] + 1]; ++place)
        features.numbers.push_back(place);
    features.end_list();
  }
  const Tensor taken = at::tensor(features.numbers, at::kLong);
  return {batch,
          count,
          features.offsets_tensor(),
          graph_->features.index_select(0, taken),
          graph_->feature_values.index_select(0, taken),
          edges(at::tensor(offsets, at::kLong).view({batch, 1, count + 1}),
                at::tensor(seen.numbers, at::kLong))};
}

// The features after the linear map of the first layer, [batch, count, depth]. Dropout only needs
// the nonzero features.
Tensor GraphNetwork::read(const Nodes& nodes, const Pass& pass) const {
  const Tensor values = attend::dropout(to_device(nodes.feature_values).to(features_.scalar_type()),
                                        input_dropout_, pass);
  constexpr int64_t sum = 0;
  const Tensor mapped = std::get<0>(at::embedding_bag(
      features_, to_device(nodes.features), to_device(nodes.feature_offsets),
      /*scale_grad_by_freq=*/false, sum, /*sparse=*/false, values, /*include_last_offset=*/true));
  return pass.watched(WatchedVectors::input, mapped.view({nodes.batch, nodes.count, -1}));
}

// Input of the last layer; if it is the first layer, after its linear map.
Tensor GraphNetwork::top_input(const Nodes& nodes, const Pass& pass) {
  Tensor vectors = read(nodes, pass);
  for (size_t layer = 0; layer + 1 < layers_.size(); ++layer) {
    if (layer > 0)
      vectors = maps_[layer - 1]->forward(attend::dropout(vectors, input_dropout_, pass), pass);
    const Site site{NetworkPart::encoder, static_cast<int64_t>(layer) + 1};
    vectors = exponential_linear(layers_[layer]->forward(vectors, nodes.seen, pass.at_site(site)));
  }
  return vectors;
}

Tensor GraphNetwork::scores_of(const Nodes& nodes, const Pass& pass) {
  Tensor vectors = top_input(nodes, pass);
  if (!maps_.empty())
    vectors = maps_.back()->forward(attend::dropout(vectors, input_dropout_, pass), pass);
  return layers_.back()->forward(vectors, nodes.seen,
                                 pass.at_site({NetworkPart::encoder, std::ssize(layers_)}));
}

// [B, outputs] for the first node of each source.
Tensor GraphNetwork::scores(const Tensor& source, const Pass& pass) {
  if (source.size(1) != 1 || pass.watch != nullptr)
    return scores_of(chosen(source), pass).select(1, 0);
  const Tensor nodes = nodes_of(source).select(1, 0);
  if (nodes.numel() > 0 && nodes.min().item<int64_t>() < 0)
    fail("[graph] a source is not a node of the graph");
  const bool is_packed = packed_.defined() && !pass.generator && !at::GradMode::is_enabled();
  const Tensor all = is_packed ? packed_ : scores_of(whole(), pass)[0];
  return all.index_select(0, to_device(nodes));
}

Tensor GraphNetwork::objective(const Batch& batch, const Pass& pass, double smoothing) {
  return internal::label_objective(scores(batch.source, pass), batch, target_, smoothing);
}

Tensor GraphNetwork::log_probabilities(const Batch& batch, const Pass& pass) {
  return internal::target_log_probabilities(scores(batch.source, pass), batch, target_);
}

TopVectors GraphNetwork::top_vectors(int64_t source_length, int64_t /*target_length*/) const {
  Tensor shares = at::zeros({1, source_length});
  shares[0][0] = 1;
  return {.shares = shares, .layers_add = false};
}

Tensor GraphNetwork::encodings(const Tensor& source, const Tensor& /*lengths*/, const Pass& pass) {
  if (source.size(1) != 1) return top_input(chosen(source), pass);
  return top_input(whole(), pass)[0]
      .index_select(0, to_device(nodes_of(source).select(1, 0)))
      .unsqueeze(1);
}

std::vector<int64_t> GraphNetwork::with_surroundings(std::vector<int64_t> source) const {
  std::unordered_set<int64_t> there(source.begin(), source.end());
  size_t begin = 0;
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    const size_t end = source.size();
    for (; begin < end; ++begin) {
      if (source[begin] < first_node) continue;
      for (const int64_t node :
           List(graph_->offsets, graph_->neighbours, source[begin] - first_node))
        if (there.insert(node + first_node).second) source.push_back(node + first_node);
    }
  }
  return source;
}

bool GraphNetwork::pack(WeightType weights) {
  if (weights != WeightType::float32) return false;
  const at::NoGradGuard no_gradient;
  const BatchInvariantGuard invariant;
  packed_ = scores_of(whole(), {})[0];
  return true;
}

Tensor GraphNetwork::node_weights(const Tensor& source) {
  AttentionTrace trace;
  scores(source, Pass{}.watched_by(trace));
  Tensor shares = at::zeros(source.sizes(), features_.options().requires_grad(false));
  shares.select(1, 0).fill_(1);
  const auto& layers = trace.attentions();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    shares = at::matmul(shares.unsqueeze(1), layer->weights().mean(1)).squeeze(1);
  return shares;
}

// The whole network is one step, which depends only on the source.
struct GraphNetwork::State : DecodingState {
  State(GraphNetwork& its_network, Tensor its_source)
      : network(its_network), source(std::move(its_source)) {}

  StepResult step(const Tensor& /*tokens*/, bool with_weights, const Pass& pass) override {
    StepResult result;
    result.log_probabilities = internal::step_values(network.scores(source, pass), network.target_);
    if (with_weights) result.weights = network.node_weights(source);
    return result;
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    if (!same_sources) source = selected_rows(source, rows);
  }

  GraphNetwork& network;
  Tensor source;
};

std::unique_ptr<DecodingState> GraphNetwork::start(const Tensor& source, const Tensor& /*lengths*/,
                                                   const Pass& /*pass*/) {
  return std::make_unique<State>(*this, source);
}

}  // namespace attend
