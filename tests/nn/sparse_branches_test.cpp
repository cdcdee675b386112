#include "attend/nn/sparse_branches.h"

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
namespace sparse_branches_test {

using at::Tensor;
using Row = std::vector<double>;

bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

Row numbers_of(const Tensor& x) {
  const Tensor plain = x.contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

double dot(const Row& a, const Row& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

struct Problem {
  Tensor query, key, value, gates;

  Row query_row(int64_t h, int64_t i) const { return numbers_of(query[0][h][i]); }
  // A key or the mean of keys.
  Row mean_of(int64_t h, int64_t first, int64_t count) const {
    return numbers_of(key[0][h / 2].narrow(0, first, count).mean(0));
  }
};

Problem problem_of(int64_t length) {
  torch::manual_seed(length);
  return {random({1, 4, length, 3}), random({1, 2, length, 3}), random({1, 2, length, 2}),
          at::rand({3, 1, 4, length, 1}, at::kDouble)};
}

Row softmax(Row scores) {
  double sum = 0;
  for (double& each : scores) sum += each = std::exp(each);
  for (double& each : scores) each /= sum;
  return scores;
}

// Weights of the means of whole past blocks.
Row mean_weights(const Problem& p, int64_t h, int64_t i, int64_t block) {
  Row scores;
  for (int64_t b = 0; (b + 1) * block - 1 <= i; ++b)
    scores.push_back(dot(p.query_row(h, i), p.mean_of(h, b * block, block)) / std::sqrt(3.0));
  return softmax(scores);
}

// Yuan et al. 2025, eq. 5-12: the weights of query i of a head, by plain loops.
Row weights_by_loops(const Problem& p, const SparseBranchSizes& sizes, int64_t h, int64_t i) {
  const int64_t block = sizes.block, own = i / block;
  Row total(static_cast<size_t>(p.key.size(2)), 0.0);
  const auto gate = [&](int64_t branch) { return p.gates[branch][0][h][i][0].item<double>(); };
  const auto add = [&](double factor, const std::vector<int64_t>& keys) {
    Row scores;
    for (const int64_t j : keys)
      scores.push_back(dot(p.query_row(h, i), p.mean_of(h, j, 1)) / std::sqrt(3.0));
    scores = softmax(scores);
    for (size_t n = 0; n < keys.size(); ++n)
      total[static_cast<size_t>(keys[n])] += factor * scores[n];
  };
  const Row means = mean_weights(p, h, i, block);
  for (size_t b = 0; b < means.size(); ++b)
    for (int64_t j = 0; j < block; ++j)
      total[b * static_cast<size_t>(block) + static_cast<size_t>(j)] +=
          gate(0) * means[b] / static_cast<double>(block);
  Row worth(static_cast<size_t>(own + 1), 0.0);
  for (const int64_t head : {h / 2 * 2, h / 2 * 2 + 1}) {
    const Row each = mean_weights(p, head, i, block);
    for (size_t b = 0; b < each.size(); ++b) worth[b] += each[b];
  }
  for (const int64_t b : {int64_t{0}, own - 1, own})
    if (b >= 0) worth[static_cast<size_t>(b)] = 100;
  std::vector<int64_t> order(worth.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return worth[static_cast<size_t>(a)] > worth[static_cast<size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<size_t>(sizes.count)));
  std::vector<int64_t> selected, near;
  for (int64_t j = 0; j <= i; ++j) {
    if (std::find(order.begin(), order.end(), j / block) != order.end()) selected.push_back(j);
    if (j > i - sizes.window) near.push_back(j);
  }
  add(gate(1), selected);
  add(gate(2), near);
  return total;
}

TEST(SparseBranches, AreTheFormula) {
  for (const int64_t length : {1, 3, 18, 41})
    for (const SparseBranchSizes& sizes :
         {SparseBranchSizes{4, 4, 3}, SparseBranchSizes{3, 2, 1}, SparseBranchSizes{64, 3, 70}}) {
      SCOPED_TRACE(testing::Message() << length << ' ' << sizes.block);
      const Problem p = problem_of(length);
      const AttentionSpec spec{.scope = causal()};
      const Tensor weights = sparse_weights(sizes, {p.query, p.key, p.value}, spec, p.gates, {});
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < length; ++i)
          EXPECT_TRUE(close(weights[0][h][i],
                            torch::tensor(weights_by_loops(p, sizes, h, i), torch::kDouble)))
              << h << ' ' << i;
      const Tensor contexts = sparse_contexts(sizes, {p.query, p.key, p.value}, spec, p.gates, {});
      EXPECT_TRUE(close(contexts, at::matmul(weights, p.value.repeat_interleave(2, 1))));
    }
}

MultiHeadConfig small() {
  MultiHeadConfig config{.depth = 8,
                         .groups = {{.choices = {.scope = "causal"}, .heads = 4, .key_heads = 2}}};
  config.groups[0].branches = {.block = 2, .count = 3, .window = 3};
  return config;
}

TEST(SparseBranches, HaveGradientsAndWeights) {
  torch::manual_seed(3);
  MultiHeadAttention module(small());
  module.to(torch::kDouble);
  const Tensor x = random({2, 9, 8}), direction = random({2, 9, 8});
  const auto loss = [&](const Tensor& input) {
    return (module.forward(input, input) * direction).sum();
  };
  reference::expect_gradients([&](const reference::Tensors& inputs) { return loss(inputs[0]); },
                              {x}, {"x"});
  reference::expect_parameter_gradients(module, [&] { return loss(x); });
  const at::NoGradGuard no_gradient;
  AttentionTrace trace;
  const Tensor watched = module.forward(x, x, {}, Pass{}.watched_by(trace));
  EXPECT_TRUE(close(watched, module.forward(x, x)));
  const TracedAttention& one = trace.attentions().at(0);
  EXPECT_EQ(one.heads(), 4);
  EXPECT_TRUE(close(at::matmul(one.weights(), one.calls[0].value.repeat_interleave(2, 1)),
                    one.calls[0].result.context));
}

TEST(SparseBranches, RefuseMisuse) {
  const auto making = [](const std::function<void(HeadGroup&)>& change) {
    MultiHeadConfig config = small();
    change(config.groups[0]);
    return [config] { MultiHeadAttention module(config); };
  };
  expect_errors({
      {making([](HeadGroup& group) { group.choices.scope = "all"; }), "got scope all"},
      {making([](HeadGroup& group) { group.choices.bias = "alibi"; }), "bias 'alibi'"},
      {making([](HeadGroup& group) { group.choices.normaliser = "sigmoid"; }),
       "normaliser sigmoid"},
      {making([](HeadGroup& group) { group.branches.window = 0; }), "a window of 0"},
  });
}

}  // namespace sparse_branches_test
}  // namespace attend
