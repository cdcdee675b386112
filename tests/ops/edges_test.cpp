// Tests of attention along edges: bias and weights by edge, graphs of pairs, invalid input.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <limits>

#include "attend/base/error.h"
#include "attend/ops/graph.h"
#include "tests/ops/differences.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace edges_test {

using at::Tensor;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor numbers(std::vector<int64_t> list) { return at::tensor(list, at::kLong); }

// Pairs of a graph of this size, unordered; some nodes see nothing.
Tensor some_pairs(int64_t queries, int64_t keys) {
  std::vector<int64_t> sources, targets;
  for (int64_t n = 0; n < queries * keys; ++n) {
    const int64_t place = n * 7919 % (queries * keys), i = place / keys, j = place % keys;
    if (i % 4 == 3 || (i + 2 * j) % 3 != 0) continue;
    sources.push_back(j);
    targets.push_back(i);
  }
  return at::stack({numbers(sources), numbers(targets)});
}

struct Inputs {
  Tensor query, key, value;

  explicit Inputs(int64_t queries, int64_t keys, at::ScalarType type = at::kDouble,
                  int64_t depth = 5) {
    torch::manual_seed(3);
    query = at::randn({2, 4, queries, depth}, type);
    key = at::randn({2, 2, keys, depth}, type);
    value = at::randn({2, 2, keys, 3}, type);
  }
  Tensors all() const { return {query, key, value}; }
};

// 7919 has no common factor with the numbers of pairs, so that every pair occurs once.
const std::vector<std::pair<int64_t, int64_t>> kSizes = {{1, 1}, {3, 5}, {5, 3}, {59, 111}};

// Equals a mask with a dense bias: on every path, with every gradient.
TEST(Edges, AreAMaskWithADenseBias) {
  for (const auto& [queries, keys] : kSizes) {
    for (const auto& shape : std::vector<std::vector<int64_t>>{{}, {4}, {2, 1}}) {
      const Graph graph = make_graph(some_pairs(queries, keys), queries, keys);
      const int64_t edges_count = graph.keys.size(0);
      const Inputs inputs(queries, keys);
      std::vector<int64_t> bias_shape = shape;
      bias_shape.push_back(edges_count);
      const Tensor bias = at::randn(bias_shape, at::kDouble);
      const Tensor rows = at::repeat_interleave(graph.offsets.diff());
      const auto dense = [&](const Tensor& of_edges) {
        std::vector<int64_t> all = shape;
        all.push_back(queries * keys);
        Tensor whole =
            at::zeros(all, at::kDouble).index_add(-1, rows * keys + graph.keys, of_edges);
        all.back() = queries;
        all.push_back(keys);
        return whole.view(all);
      };
      const Tensor mask = at::zeros({queries, keys}, at::kBool)
                              .index_put_({rows, graph.keys}, at::ones({}, at::kBool));
      const Dropout dropout{.probability = 0.3, .seed = 9, .first_query = 2, .first_key = 5};
      const auto results = [&](bool along, Path path) {
        Tensors leaf = leaves({inputs.query, inputs.key, inputs.value, bias});
        const auto [context, lse] =
            attention(leaf[0], leaf[1], leaf[2],
                      {.scope = along ? edges(graph) : dense_mask(mask),
                       .bias = along ? edge_bias(leaf[3]) : dense_bias(dense(leaf[3])),
                       .dropout = dropout,
                       .path = path});
        Tensors found = {context, lse};
        const Tensor seen = lse.masked_fill(lse.isinf(), 0.0);
        for (const Tensor& g : gradients(context.sin().sum() + seen.cos().sum(), leaf, false))
          found.push_back(g);
        return found;
      };
      const Tensors wanted = results(false, Path::composed);
      for (const Path path : {Path::fused, Path::composed}) {
        const Tensors got = results(true, path);
        for (size_t n = 0; n < wanted.size(); ++n)
          EXPECT_TRUE(at::allclose(got[n], wanted[n], 1e-10, 1e-12)) << queries << " " << n;
      }
    }
  }
}

// Results with a row for all keys, and draws among all keys, equal a mask with a dense bias.
TEST(Edges, AllWeightsAndScoresKnowTheBias) {
  const Graph graph = make_graph(some_pairs(7, 9), 7, 9);
  const Inputs inputs(7, 9);
  const Tensor rows = at::repeat_interleave(graph.offsets.diff());
  const Tensor bias = at::randn({4, graph.keys.size(0)}, at::kDouble);
  const Tensor places = rows * 9 + graph.keys;
  const Tensor dense = at::zeros({4, 63}, at::kDouble).index_copy(1, places, bias).view({4, 7, 9});
  const Tensor mask =
      at::zeros({63}, at::kBool).index_fill_(0, places, at::ones({}, at::kBool)).view({7, 9});
  for (const char* normaliser : {"softmax", "sparsemax", "sigmoid", "hard", "gumbel", "entmax:1.3",
                                 "softpick", "scalable", "stick_breaking", "top_k:2"})
    for (const Path path : {Path::automatic, Path::composed}) {
      AttentionSpec wanted = {.scope = dense_mask(mask),
                              .bias = dense_bias(dense),
                              .normaliser = Normaliser(normaliser, 5),
                              .path = path};
      AttentionSpec along = wanted;
      along.scope = edges(graph);
      along.bias = edge_bias(bias);
      const auto told = [&](const AttentionSpec& spec) -> Tensors {
        const auto [context, lse] = attention(inputs.query, inputs.key, inputs.value, spec);
        const TopWeights top = attention_top(inputs.query, inputs.key, lse, 3, spec);
        return {context,
                attention_weights(inputs.query, inputs.key, lse, spec),
                attention_scores(inputs.query, inputs.key, spec),
                attention_entropy(inputs.query, inputs.key, lse, spec),
                attention_column_sums(inputs.query, inputs.key, lse, spec),
                top.weights,
                top.keys.to(at::kDouble)};
      };
      const Tensors got = told(along), expected = told(wanted);
      for (size_t n = 0; n < expected.size(); ++n)
        EXPECT_TRUE(at::allclose(got[n], expected[n], 1e-10, 1e-12)) << normaliser << " " << n;
    }
}

TEST(Edges, HaveSecondDerivatives) {
  const Graph graph = make_graph(some_pairs(3, 4), 3, 4);
  torch::manual_seed(4);
  const Tensors inputs = {
      at::randn({1, 2, 3, 2}, at::kDouble), at::randn({1, 2, 4, 2}, at::kDouble),
      at::randn({1, 2, 4, 2}, at::kDouble), at::randn({2, graph.keys.size(0)}, at::kDouble),
      at::randn({2}, at::kDouble)};
  const std::vector<std::string> names = {"query", "key", "value", "bias", "slopes"};
  const auto function = [&](const Tensors& x) {
    const auto [context, lse] = attention(x[0], x[1], x[2],
                                          {.scope = edges(graph),
                                           .bias = edge_bias(x[3]) + alibi(x[4]),
                                           .soft_cap = 3,
                                           .dropout = {.probability = 0.2, .seed = 5}});
    return context.sin().sum() + lse.masked_fill(lse.isinf(), 0.0).cos().sum();
  };
  expect_gradients(function, inputs, names);
  expect_second_gradients(function, inputs, names);
}

// Edge lists of different lengths per batch entry: shorter ones are padded with 0.
TEST(Edges, WeightsByEdgeAreThoseOfTheRows) {
  const Tensor offsets = numbers({0, 2, 4, 4, 4, 9}).view({2, 1, 3});
  const Tensor keys = numbers({1, 4, 0, 2, 0, 1, 2, 3, 4});
  const Inputs inputs(2, 5);
  for (const char* normaliser :
       {"softmax", "sparsemax", "hard", "entmax:1.3", "softpick", "top_k:2", "stick_breaking"}) {
    const AttentionSpec spec = {.scope = edges(offsets, keys), .normaliser = normaliser};
    const auto result = attention(inputs.query, inputs.key, inputs.value, spec);
    const Tensor all = attention_weights(inputs.query, inputs.key, result.lse, spec);
    for (const Path path : {Path::automatic, Path::composed}) {
      AttentionSpec taken = spec;
      taken.path = path;
      const Tensor got = attention_edge_weights(inputs.query, inputs.key, result.lse, taken,
                                                {.heads = {3, 0}, .first_row = 0, .rows = 2});
      ASSERT_EQ(got.sizes(), (std::vector<int64_t>{2, 2, 5}));
      const Tensor none = attention_edge_weights(inputs.query, inputs.key, result.lse, taken,
                                                 {.first_row = 1, .rows = 1});
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t i = 0; i < 2; ++i) {
          const auto first = offsets[b][0][0].item<int64_t>();
          for (auto n = offsets[b][0][i].item<int64_t>(); n < offsets[b][0][i + 1].item<int64_t>();
               ++n) {
            const auto key = keys[n].item<int64_t>();
            EXPECT_NEAR(got[b][0][n - first].item<double>(), all[b][3][i][key].item<double>(),
                        1e-12);
            EXPECT_NEAR(got[b][1][n - first].item<double>(), all[b][0][i][key].item<double>(),
                        1e-12);
            EXPECT_NEAR(none[b][1][n - first].item<double>(),
                        i == 1 ? all[b][1][i][key].item<double>() : 0, 1e-12);
          }
        }
      }
      EXPECT_EQ(got[0].narrow(-1, 4, 1).abs().max().item<double>(), 0);
    }
  }
}

TEST(Edges, WeightsByEdgeAreDifferentiable) {
  const Graph graph = make_graph(some_pairs(3, 4), 3, 4);
  torch::manual_seed(6);
  const Tensors inputs = {at::randn({3, 2}, at::kDouble), at::randn({4, 2}, at::kDouble)};
  const AttentionSpec spec = {.scope = edges(graph)};
  const auto function = [&](const Tensors& x) {
    const Tensor lse = attention(x[0], x[1], x[1], spec).lse;
    return attention_edge_weights(x[0], x[1], lse, spec).square().sum();
  };
  expect_gradients(function, inputs, {"query", "key"});
}

TEST(Edges, OfPairsAndSelfLoops) {
  const Tensor pairs = at::stack({numbers({2, 0, 1, 1}), numbers({0, 2, 1, 0})});
  const Graph plain = make_graph(pairs, 3, 3);
  EXPECT_TRUE(plain.offsets.equal(numbers({0, 2, 3, 4})));
  EXPECT_TRUE(plain.keys.equal(numbers({1, 2, 1, 0})));
  EXPECT_TRUE(plain.order.equal(numbers({3, 0, 2, 1})));
  const Graph looped = make_graph(pairs, 3, 3, SelfLoops::added);
  EXPECT_TRUE(looped.offsets.equal(numbers({0, 3, 4, 6})));
  EXPECT_TRUE(looped.keys.equal(numbers({0, 1, 2, 1, 0, 2})));
  EXPECT_TRUE(looped.order.equal(numbers({4, 3, 0, 2, 1, 5})));
  const Graph nothing = make_graph(at::zeros({2, 0}, at::kLong), 2, 0);
  EXPECT_TRUE(nothing.offsets.equal(numbers({0, 0, 0})));
}

// A batch of graphs as one graph: each has the results of the separate graph.
TEST(Edges, OfJoinedGraphs) {
  const std::vector<Graph> graphs = {make_graph(some_pairs(3, 5), 3, 5),
                                     make_graph(some_pairs(5, 3), 5, 3)};
  const Graph whole = joined(graphs);
  const Inputs inputs(8, 8);
  const Tensor bias = at::randn({whole.keys.size(0)}, at::kDouble);
  const Tensor together =
      attention(inputs.query, inputs.key, inputs.value,
                {.scope = edges(whole), .bias = edge_bias(bias.index_select(0, whole.order))})
          .context;
  int64_t query = 0, key = 0, edge = 0;
  for (const Graph& graph : graphs) {
    const int64_t queries = graph.query_count(), keys = graph.key_count, count = graph.keys.size(0);
    const Tensor alone =
        attention(inputs.query.narrow(2, query, queries), inputs.key.narrow(2, key, keys),
                  inputs.value.narrow(2, key, keys),
                  {.scope = edges(graph),
                   .bias = edge_bias(bias.narrow(0, edge, count).index_select(0, graph.order))})
            .context;
    EXPECT_TRUE(at::allclose(together.narrow(2, query, queries), alone, 1e-12, 1e-14));
    query += queries;
    key += keys;
    edge += count;
  }
}

// The centre has a hundred thousand neighbours; a mask would take 10^10 bytes.
TEST(Edges, OfAStar) {
  constexpr int64_t nodes = 100000;
  const Tensor leaf = at::arange(1, nodes, at::kLong), centre = at::zeros_like(leaf);
  const Graph star =
      make_graph(at::stack({at::cat({leaf, centre}), at::cat({centre, leaf})}), nodes, nodes);
  const Tensor x = at::randn({nodes, 4}, at::kFloat).set_requires_grad(true);
  const auto [context, lse] = attention(x, x, x, {.scope = edges(star)});
  context.sum().backward();
  const Tensor plain = x.detach();
  const Tensor scores = (plain[0] * plain.slice(0, 1)).sum(1) / 2;
  const Tensor wanted = at::matmul(scores.softmax(0), plain.slice(0, 1));
  EXPECT_TRUE(at::allclose(context[0].detach(), wanted, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(context.slice(0, 1).detach(), plain[0].expand({nodes - 1, 4})));
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
  EXPECT_THAT([&] { attention(x, x, x, {.scope = edges(star), .path = Path::composed}); },
              ThrowsMessage<Error>(HasSubstr("the 99999 of the longest row")));
}

void expect_refused(const std::function<void()>& call, const char* what) {
  EXPECT_THAT(call, ThrowsMessage<Error>(HasSubstr(what)));
}

TEST(Edges, ListsThatDoNotFitAreRefused) {
  const Tensor ends = numbers({0, 1, 3}), keys = numbers({2, 0, 1});
  expect_refused([&] { edges(Tensor(), keys); }, "the offsets of edges must be int64");
  expect_refused([&] { edges(ends.to(at::kInt), keys); }, "Int of shape [3]");
  expect_refused([&] { edges(ends, keys.to(at::kDouble)); }, "the keys of edges must be int64");
  expect_refused([&] { edges(numbers({1, 1, 3}), keys); }, "offset 0 of the edges is 1 after 0");
  expect_refused([&] { edges(numbers({0, 2, 1}), keys); }, "offset 2 of the edges is 1 after 2");
  expect_refused([&] { edges(numbers({0, 2, 4}), keys); }, "offset 2 of the edges is 4 after 2");
  expect_refused([&] { edges(numbers({0, 1, 2}), keys); }, "end at 2; there are 3 edges");
  expect_refused(
      [&] {
        edges(numbers({0, 1, 2, 3}).view({2, 1, 2}), keys);
      },
      "offset 2 of the edges is 2 after 1");
  expect_refused([&] { edges(ends, numbers({2, 1, 1})); }, "query 1 to key 1 after key 1");
  expect_refused([&] { edges(ends, numbers({-1, 0, 1})); }, "query 0 to key -1");
  const Inputs inputs(2, 3);
  const auto run = [&](const AttentionSpec& spec) {
    return attention(inputs.query, inputs.key, inputs.value, spec);
  };
  run({.scope = edges(ends, keys)});
  expect_refused([&] { run({.scope = edges(numbers({0, 3}), numbers({0, 1, 2}))}); }, "do not fit");
  expect_refused(
      [&] {
        run({.scope = edges(ends, numbers({3, 0, 1}))});
      },
      "leads to key 3; there are 3 keys");
  const Bias bias = edge_bias(at::zeros({3}, at::kDouble));
  run({.scope = edges(ends, keys) & causal(), .bias = bias});
  expect_refused([&] { run({.bias = bias}); }, "the scope is not one clause");
  expect_refused([&] { run({.scope = edges(ends, keys) | causal(), .bias = bias}); },
                 "not one clause");
  expect_refused(
      [&] { run({.scope = edges(ends, keys), .bias = edge_bias(at::zeros({2}, at::kDouble))}); },
      "the 3 edges of the longest list");
  expect_refused(
      [&] { run({.scope = edges(ends, keys), .bias = bias, .normaliser = "monotonic"}); },
      "run in order");
  expect_refused([&] { shifted(bias, 1); }, "whole lists of edges");
  expect_refused([&] { attention_edge_weights(inputs.query, inputs.key, run({}).lse); },
                 "weights by edge were asked for");
}

TEST(Edges, PairsThatDoNotFitAreRefused) {
  const auto pairs = [](std::vector<int64_t> sources, std::vector<int64_t> targets) {
    return at::stack({numbers(std::move(sources)), numbers(std::move(targets))});
  };
  expect_refused([&] { make_graph(numbers({1, 2}), 3, 3); }, "shape [2, edges]");
  expect_refused([&] { make_graph(pairs({0, 3}, {0, 1}), 3, 3); }, "pair 1 has source 3");
  expect_refused([&] { make_graph(pairs({0, 1}, {-1, 1}), 3, 3); }, "pair 0 has target -1");
  expect_refused(
      [&] {
        make_graph(pairs({0, 1, 0}, {2, 1, 2}), 3, 3);
      },
      "pairs 0 and 2 are the same");
  expect_refused([&] { make_graph(pairs({0}, {1}), 2, 3, SelfLoops::added); },
                 "equal numbers of queries and keys");
  expect_refused([&] { make_graph(pairs({0}, {1}), -2, 3); }, "negative");
  expect_refused([&] { joined({}); }, "no graphs to join");
}

}  // namespace edges_test
}  // namespace attend::reference
