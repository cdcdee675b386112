#include "attend/nn/key_indexer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attend/nn/attention_trace.h"
#include "attend/nn/multi_head_attention.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace key_indexer_test {

using at::Tensor;

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

std::shared_ptr<KeyIndexer> made(const KeyIndexerSizes& sizes) {
  torch::manual_seed(4);
  auto indexer = std::make_shared<KeyIndexer>(sizes, 6, 5);
  indexer->to(torch::kDouble);
  const torch::NoGradGuard no_gradient;
  for (Tensor& each : indexer->parameters()) each.add_(torch::randn_like(each) * 0.2);
  return indexer;
}

// I_ij by plain loops over the maps of the module.
double score_of(const KeyIndexer& indexer, const Tensor& x, const Tensor& source, int64_t heads,
                int64_t depth) {
  const auto all = indexer.named_parameters();
  const auto map = [&](const char* name, const Tensor& from, int64_t row) {
    const std::string part(name);
    double sum = all[part + ".bias"][row].item<double>();
    for (int64_t a = 0; a < from.size(0); ++a)
      sum += all[part + ".weight"][row][a].item<double>() * from[a].item<double>();
    return sum;
  };
  double total = 0;
  for (int64_t h = 0; h < heads; ++h) {
    double product = 0;
    for (int64_t a = 0; a < depth; ++a)
      product += map("query", x, h * depth + a) * map("key", source, a);
    total += map("weight", x, h) * std::max(0.0, product);
  }
  return total / std::sqrt(static_cast<double>(depth));
}

TEST(KeyIndexer, ScoresAreTheFormula) {
  const at::NoGradGuard no_gradient;
  const auto indexer = made({.keys = 2, .heads = 3, .depth = 4});
  const Tensor x = random({2, 3, 6}), source = random({2, 5, 5});
  const Tensor scores = indexer->scores(x, indexer->keys(source, {}), {});
  ASSERT_EQ(scores.sizes(), at::IntArrayRef({2, 1, 3, 5}));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 5; ++j)
        EXPECT_NEAR(scores[b][0][i][j].item<double>(),
                    score_of(*indexer, x[b][i], source[b][j], 3, 4), 1e-12);
}

TEST(KeyIndexer, TakesTheLargestInOrder) {
  const Tensor scores = torch::tensor({{1., 3., 3., 2.}, {0., 0., 0., 0.}}, torch::kDouble);
  EXPECT_TRUE(at::equal(top_keys(scores, {}, 2),
                        torch::tensor({{false, true, true, false}, {true, true, false, false}})));
  const Tensor candidates = torch::tensor({{true, false, true, true}, {false, true, false, false}});
  EXPECT_TRUE(at::equal(top_keys(scores, candidates, 2),
                        torch::tensor({{false, false, true, true}, {false, true, false, false}})));
  EXPECT_TRUE(top_keys(scores, {}, 9).all().item<bool>());
}

// The chosen keys as edges, with padding, are the largest of the scope.
TEST(KeyIndexer, ChoosesWithinTheScope) {
  for (const int64_t length : {1, 3, 17}) {
    const auto indexer = made({.keys = 3, .heads = 2, .depth = 2});
    const Tensor scores = random({2, 1, length, length});
    const Tensor lengths = torch::tensor({length, (length + 1) / 2});
    const Scope scope = causal() & key_lengths(lengths);
    const Tensor pairs = scope_mask(scope, 2, 1, length, length, at::kCPU);
    const Scope chosen = indexer->chosen(scores, scope);
    const Tensor got = scope_mask(chosen, 2, 1, length, length, at::kCPU).expand_as(scores);
    EXPECT_TRUE(at::equal(got, top_keys(scores, pairs, 3))) << length;
  }
}

// sum_j p_j ln(p_j / q_j), q the softmax over the keys in scope.
TEST(KeyIndexer, IsTrainedByTheDivergence) {
  Tensor scores = random({1, 1, 4, 4}).requires_grad_();
  const Tensor lengths = torch::tensor({3});
  const Tensor weights =
      random({1, 2, 4, 4}).masked_fill(at::ones({4, 4}, at::kBool).triu(1), -INFINITY).softmax(-1);
  const Tensor got = KeyIndexer::divergence(scores, causal(), weights, lengths);
  double want = 0;
  for (int64_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (int64_t j = 0; j <= i; ++j) sum += std::exp(scores[0][0][i][j].item<double>());
    for (int64_t j = 0; j <= i; ++j) {
      const double p = weights[0].select(1, i).select(1, j).mean().item<double>();
      want += p * (std::log(p) - scores[0][0][i][j].item<double>() + std::log(sum));
    }
  }
  EXPECT_NEAR(got.item<double>(), want / 3, 1e-12);
  reference::expect_gradients(
      [&](const reference::Tensors& inputs) {
        return KeyIndexer::divergence(inputs[0], causal(), weights, lengths);
      },
      {scores.detach()}, {"scores"});
}

MultiHeadConfig small() {
  MultiHeadConfig config{.depth = 6,
                         .groups = {{.choices = {.scope = "causal"}, .heads = 2, .key_heads = 1}}};
  config.groups[0].indexer = {.keys = 3, .heads = 2, .depth = 3};
  return config;
}

// The loss trains all parameters except the indexer's, and the penalty trains only these.
TEST(KeyIndexer, HasItsOwnObjective) {
  torch::manual_seed(8);
  MultiHeadAttention module(small());
  module.to(torch::kDouble);
  const Tensor x = random({2, 8, 6}), direction = random({2, 8, 6});
  reference::expect_gradients(
      [&](const reference::Tensors& inputs) {
        return (module.forward(inputs[0], inputs[0]) * direction).sum();
      },
      {x}, {"x"});
  std::vector<Tensor> penalties;
  Pass pass;
  pass.penalties = &penalties;
  const Tensor loss = (module.forward(x, x, {}, pass) * direction).sum();
  ASSERT_EQ(penalties.size(), 1U);
  const auto has_gradient = [&](bool of_indexer) {
    for (const auto& item : module.named_parameters()) {
      const bool own = item.key().starts_with("indexer");
      EXPECT_EQ(item.value().grad().defined(), own == of_indexer) << item.key();
      item.value().mutable_grad() = Tensor();
    }
  };
  penalties[0].backward();
  has_gradient(true);
  loss.backward();
  has_gradient(false);
}

TEST(KeyIndexer, WatchesSeeTheWeightsOfFewKeys) {
  const at::NoGradGuard no_gradient;
  torch::manual_seed(8);
  MultiHeadAttention module(small());
  module.to(torch::kDouble);
  const Tensor x = random({2, 8, 6});
  AttentionTrace trace;
  const Tensor watched = module.forward(x, x, {}, Pass{}.watched_by(trace));
  EXPECT_TRUE(at::allclose(watched, module.forward(x, x), 1e-12, 1e-12));
  const Tensor weights = trace.attentions().at(0).weights();
  EXPECT_EQ((weights > 0).sum(-1).max().item<int64_t>(), 3);
  EXPECT_TRUE(at::allclose(weights.sum(-1), at::ones({2, 2, 8}, at::kDouble)));
}

TEST(KeyIndexer, RefusesMisuse) {
  const auto making = [](const std::function<void(HeadGroup&)>& change) {
    MultiHeadConfig config = small();
    change(config.groups[0]);
    return [config] { MultiHeadAttention module(config); };
  };
  expect_errors({
      {making([](HeadGroup& group) { group.choices.normaliser = "monotonic"; }),
       "got normaliser monotonic"},
      {making([](HeadGroup& group) { group.indexer.depth = 0; }), "2 heads of depth 0"},
      {[] {
         top_keys(at::zeros({2, 2}), {}, 0);
       },
       "a query reads 0 keys"},
  });
}

}  // namespace key_indexer_test
}  // namespace attend
