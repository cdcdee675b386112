#include "attend/models/graph_network.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "attend/base/error.h"
#include "attend/text/vocabulary.h"
#include "tests/models/networks.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace graph_network_test {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t first = Vocabulary::unknown + 1, nodes = 16, labels = 3;

SourceShape source_of(int64_t count) { return NodeForm{count + first, test::ring_graph(count)}; }

// A layer of two heads of depth 3, then a layer of two heads that are averaged.
const GraphNetworkConfig small = {.depth = 6, .heads = 2, .output_heads = 2, .attention_depth = 4};

std::shared_ptr<GraphNetwork> make(const GraphNetworkConfig& config = small,
                                   int64_t targets = labels + first) {
  torch::manual_seed(5);
  auto network = std::make_shared<GraphNetwork>(config, source_of(nodes), targets);
  network->to(at::kDouble);
  const at::NoGradGuard no_gradient;
  for (Tensor& parameter : network->parameters()) parameter.add_(at::randn_like(parameter), 0.1);
  return network;
}

Tensor tokens(const std::vector<int64_t>& given) {
  return at::tensor(given, at::kLong).unsqueeze(1) + first;
}

Batch batch_of(const std::vector<int64_t>& given) {
  const auto count = static_cast<int64_t>(given.size());
  return {tokens(given), at::ones({count}, at::kLong),
          at::arange(count).view({-1, 1}) % labels + first, at::ones({count}, at::kLong)};
}

// The adjacency matrix of 0 and 1, with self-loops.
Tensor adjacency(const NodeGraph& graph) {
  Tensor seen = at::eye(graph.node_count(), at::kDouble);
  for (int64_t node = 0; node < graph.node_count(); ++node)
    for (auto i = graph.offsets[node].item<int64_t>(); i < graph.offsets[node + 1].item<int64_t>();
         ++i)
      seen[node][graph.neighbours[i].item<int64_t>()] = 1;
  return seen;
}

Tensor dense_features(const NodeGraph& graph) {
  Tensor dense = at::zeros({graph.node_count(), graph.feature_count()}, at::kDouble);
  for (int64_t node = 0; node < graph.node_count(); ++node)
    for (auto i = graph.feature_offsets[node].item<int64_t>();
         i < graph.feature_offsets[node + 1].item<int64_t>(); ++i)
      dense[node][graph.features[i].item<int64_t>()] = graph.feature_values[i].item<double>();
  return dense;
}

// v . leaky_relu(W_q h_i + W_k h_j) over a mask, by plain products; returns the context of each
// head.
std::vector<Tensor> dense_heads(const torch::OrderedDict<std::string, Tensor>& weights,
                                const std::string& layer, const Tensor& mapped, const Tensor& seen,
                                int64_t heads) {
  std::vector<Tensor> contexts;
  const int64_t depth = mapped.size(1) / heads;
  for (int64_t head = 0; head < heads; ++head) {
    const Tensor h = mapped.slice(1, head * depth, (head + 1) * depth);
    const Tensor q = h.matmul(weights[layer + ".attention.W_q"][head].t());
    const Tensor k = h.matmul(weights[layer + ".attention.W_k"][head].t());
    const Tensor sum = q.unsqueeze(1) + k.unsqueeze(0) + weights[layer + ".attention.b"][head];
    const Tensor score = at::leaky_relu(sum, 0.2).matmul(weights[layer + ".attention.v"][head]);
    contexts.push_back(score.masked_fill(seen == 0, -INFINITY).softmax(1).matmul(h));
  }
  return contexts;
}

Tensor dense_scores(GraphNetwork& network, const NodeGraph& graph) {
  const auto weights = network.named_parameters();
  const Tensor seen = adjacency(graph);
  const Tensor first_map = dense_features(graph).matmul(weights["features"]);
  const Tensor hidden = at::elu(at::cat(dense_heads(weights, "layer1", first_map, seen, 2), 1) +
                                weights["layer1.bias"]);
  const auto heads =
      dense_heads(weights, "layer2", hidden.matmul(weights["map2.weight"].t()), seen, 2);
  return (heads[0] + heads[1]) / 2 + weights["layer2.bias"];
}

TEST(GraphNetwork, GivesWhatDenseProductsWithAMaskGive) {
  const auto network = make();
  const at::NoGradGuard no_gradient;
  const Tensor wanted =
      dense_scores(*network, *test::ring_graph(nodes)).index_select(0, at::tensor({4, 0, 4, 8}));
  const Tensor given = network->log_probabilities(batch_of({4, 0, 4, 8}), {});
  ASSERT_EQ(given.sizes(), (std::vector<int64_t>{4, 1, labels + first}));
  EXPECT_TRUE(at::allclose(given.squeeze(1).slice(1, first), wanted.log_softmax(1), 1e-12, 1e-12));
  EXPECT_TRUE(at::isinf(given.slice(2, 0, first)).all().item<bool>());
}

TEST(GraphNetwork, HasTheGradientsOfItsObjective) {
  for (const char* score : {"additive_leaky_relu", "general", "scaled_dot"}) {
    GraphNetworkConfig config = small;
    config.score = score;
    config.attention_depth = 1;
    const auto network = make(config);
    reference::expect_parameter_slopes(*network, [&] {
      return network->objective(batch_of({1, 5, 7}), {}, 0.1);
    });
  }
}

// Dropout applies to features, inputs of later layers and weights, determined by the generator's
// seed.
TEST(GraphNetwork, DropsByItsGenerator) {
  const auto network = make();
  const auto objective = [&](uint64_t seed) {
    const Pass pass{.generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
    return network->objective(batch_of({1, 5, 7}), pass, 0).item<double>();
  };
  EXPECT_EQ(objective(1), objective(1));
  EXPECT_NE(objective(1), objective(2));
  EXPECT_EQ(network->objective(batch_of({1}), {}, 0).item<double>(),
            network->objective(batch_of({1}), {}, 0).item<double>());
}

// An answer depends only on the nodes within two steps; further nodes do not matter.
TEST(GraphNetwork, AnswersFromTheSurroundingsAsFromTheWhole) {
  const auto network = make();
  const at::NoGradGuard no_gradient;
  const std::vector<int64_t> around = network->with_surroundings({4 + first});
  // The neighbours in the ring, and a node that sees it across.
  EXPECT_EQ(around[0], 4 + first);
  EXPECT_GT(around.size(), 4U);
  EXPECT_LT(around.size(), static_cast<size_t>(nodes));
  const Tensor source = at::tensor(around, at::kLong).unsqueeze(0);
  Batch alone = batch_of({4});
  const Tensor wanted = network->log_probabilities(alone, {});
  alone.source = at::cat({source, at::full({1, 2}, Vocabulary::padding, at::kLong)}, 1);
  EXPECT_TRUE(at::allclose(network->log_probabilities(alone, {}), wanted, 1e-12, 1e-12));
  // Without the second node the answer changes.
  alone.source = source.clone();
  alone.source[0][1] = Vocabulary::unknown;
  EXPECT_FALSE(at::allclose(network->log_probabilities(alone, {}), wanted, 1e-6, 1e-6));
}

TEST(GraphNetwork, WeighsTheNodesOfASource) {
  const auto network = make();
  const at::NoGradGuard no_gradient;
  const std::vector<int64_t> around = network->with_surroundings({4 + first});
  const Tensor source = at::tensor(around, at::kLong).unsqueeze(0);
  const auto state = network->start(source, at::full({1}, source.size(1), at::kLong), {});
  const StepResult step = state->step(at::full({1}, Vocabulary::bos, at::kLong), true, {});
  ASSERT_EQ(step.weights.sizes(), source.sizes());
  EXPECT_NEAR(step.weights.sum().item<double>(), 1, 1e-6);
  EXPECT_GT(step.weights.min().item<double>(), 0);
}

TEST(GraphNetwork, KeepsItsScoresWhenPacked) {
  const auto network = make();
  const Tensor before = network->objective(batch_of({3, 6}), {}, 0).detach();
  EXPECT_FALSE(network->pack(WeightType::int8));
  EXPECT_TRUE(network->pack(WeightType::float32));
  EXPECT_TRUE(network->packs_objective());
  {
    const at::NoGradGuard no_gradient;
    network->named_parameters()["layer2.bias"].add_(at::arange(labels, at::kDouble));
    EXPECT_NEAR(network->objective(batch_of({3, 6}), {}, 0).item<double>(), before.item<double>(),
                1e-12);
  }
  // Gradients are computed from the current weights.
  EXPECT_GT(
      std::abs(network->objective(batch_of({3, 6}), {}, 0).item<double>() - before.item<double>()),
      1e-3);
}

TEST(GraphNetwork, AnswersNumbers) {
  const auto network = make(small, number_targets);
  Batch batch = batch_of({2, 7});
  batch.numbers = at::tensor({0.5, -1.0}, at::kDouble);
  const Tensor given = network->log_probabilities(batch, {});
  ASSERT_EQ(given.sizes(), (std::vector<int64_t>{2, 1, 1}));
  EXPECT_NEAR(network->objective(batch, {}, 0).item<double>(),
              (given.flatten() - batch.numbers).square().sum().item<double>(), 1e-12);
}

TEST(GraphNetwork, RefusesWhatDoesNotFit) {
  const auto refusal = [](const GraphNetworkConfig& config) {
    return test::error_of([&] { GraphNetwork(config, source_of(nodes), labels + first); });
  };
  GraphNetworkConfig config = small;
  config.heads = 4;
  EXPECT_THAT(refusal(config), HasSubstr("model.depth is 6, which 4 heads"));
  config = small;
  for (const char* score : {"location", "coverage", "location_sensitive"}) {
    config.score = score;
    EXPECT_THAT(refusal(config), HasSubstr(fmt::format("model.score is {}", score)));
  }
  config = small;
  for (const char* normaliser : {"monotonic", "hard", "linear"}) {
    config.normaliser = normaliser;
    EXPECT_NE(refusal(config), "") << normaliser;
  }
  EXPECT_THAT(test::error_of([] { GraphNetwork(small, {12}, 12); }),
              HasSubstr("data.format = graph"));
  EXPECT_THAT(test::error_of([] { make()->log_probabilities(batch_of({nodes}), {}); }),
              HasSubstr("there are 16 nodes"));
  EXPECT_THAT(test::error_of([] { make()->log_probabilities(batch_of({-1}), {}); }),
              HasSubstr("not a node of the graph"));
}

}  // namespace graph_network_test
}  // namespace attend
