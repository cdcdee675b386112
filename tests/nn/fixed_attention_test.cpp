#include "attend/nn/fixed_attention.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace fixed_attention_test {

using at::Tensor;

constexpr int64_t depth = 6, value_depth = 4, queries = 3, hidden = 5;
// For sums of some dozens of products of numbers near 1.
constexpr double tolerance = 1e-12;

struct Case {
  std::string score, normaliser;
};

FixedAttentionConfig config_of(const Case& one) {
  return {one.score, one.normaliser, depth, queries, hidden};
}

FixedAttention module_of(const Case& one) {
  torch::manual_seed(1);
  FixedAttention module(config_of(one));
  module.to(torch::kDouble);
  return module;
}

double number(const Tensor& x) { return x.item<double>(); }

double score_of(const Case& one, const FixedAttention& module, int64_t query, const Tensor& key) {
  const auto parameters = module.named_parameters();
  const Tensor q = parameters["query"][query];
  double sum = 0;
  if (one.score == "additive") {
    for (int64_t a = 0; a < hidden; ++a) {
      double inside = number(q[a]);
      for (int64_t d = 0; d < depth; ++d)
        inside += number(parameters["keys.weight"][a][d]) * number(key[d]);
      sum += number(parameters["v"][query][a]) * std::tanh(inside);
    }
    return sum;
  }
  double query_square = 0, key_square = 0, distance = 0;
  for (int64_t d = 0; d < depth; ++d) {
    sum += number(q[d]) * number(key[d]);
    query_square += number(q[d]) * number(q[d]);
    key_square += number(key[d]) * number(key[d]);
    distance += std::pow(number(q[d]) - number(key[d]), 2);
  }
  if (one.score == "cosine")
    return number(parameters["beta"][query]) * sum / std::sqrt(query_square * key_square);
  if (one.score == "squared_distance") return -distance;
  return one.score == "scaled_dot" ? sum / std::sqrt(depth) : sum;
}

class Fixed : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Choices, Fixed,
                         testing::Values(Case{"dot", "softmax"}, Case{"dot", "none"},
                                         Case{"scaled_dot", "softmax"}, Case{"additive", "softmax"},
                                         Case{"additive", "none"}, Case{"cosine", "softmax"},
                                         Case{"squared_distance", "softmax"}),
                         [](const auto& info) {
                           return info.param.score + "_" + info.param.normaliser;
                         });

TEST_P(Fixed, IsTheSumOverTheSetForEachQuery) {
  const FixedAttention module = module_of(GetParam());
  const Tensor keys = torch::randn({4, 7, depth}, torch::kDouble);
  const Tensor values = torch::randn({4, 7, value_depth}, torch::kDouble);
  const std::vector<int64_t> lengths = {7, 1, 0, 4};
  const auto [context, lse] = module.forward(keys, values, torch::tensor(lengths));
  const Tensor weights = module.weights(keys, lse, torch::tensor(lengths));
  ASSERT_EQ(context.sizes(), (std::vector<int64_t>{4, queries * value_depth}));
  ASSERT_EQ(weights.sizes(), (std::vector<int64_t>{4, queries, 7}));
  for (int64_t b = 0; b < 4; ++b) {
    for (int64_t query = 0; query < queries; ++query) {
      std::vector<double> wanted;
      double sum = 0;
      for (int64_t j = 0; j < lengths[static_cast<size_t>(b)]; ++j) {
        const double score = score_of(GetParam(), module, query, keys[b][j]);
        wanted.push_back(GetParam().normaliser == "softmax" ? std::exp(score) : score);
        sum += wanted.back();
      }
      wanted.resize(7, 0.0);
      std::vector<double> sums(value_depth, 0.0);
      for (int64_t j = 0; j < 7; ++j) {
        double& weight = wanted[static_cast<size_t>(j)];
        if (GetParam().normaliser == "softmax" && weight > 0) weight /= sum;
        EXPECT_NEAR(number(weights[b][query][j]), weight, tolerance);
        for (int64_t d = 0; d < value_depth; ++d)
          sums[static_cast<size_t>(d)] += weight * number(values[b][j][d]);
      }
      for (int64_t d = 0; d < value_depth; ++d)
        EXPECT_NEAR(number(context[b][query * value_depth + d]), sums[static_cast<size_t>(d)],
                    tolerance);
    }
  }
}

TEST_P(Fixed, DoesNotSeeTheOrderOfTheSet) {
  const FixedAttention module = module_of(GetParam());
  const Tensor set = torch::randn({2, 59, depth}, torch::kDouble);
  const Tensor shuffled = set.index_select(1, torch::randperm(59));
  EXPECT_TRUE(torch::allclose(module.forward(set, set).context,
                              module.forward(shuffled, shuffled).context, tolerance, tolerance));
}

TEST_P(Fixed, HasTheGradientsOfItsDifferences) {
  FixedAttention module = module_of(GetParam());
  const Tensor lengths = torch::tensor({5, 3}),
               probe = torch::randn({2, queries * 2}, torch::kDouble);
  std::vector<std::string> names = {"keys", "values"};
  reference::Tensors inputs = {torch::randn({2, 5, depth}, torch::kDouble),
                               torch::randn({2, 5, 2}, torch::kDouble)};
  for (const auto& item : module.named_parameters()) {
    names.push_back(item.key());
    inputs.push_back(item.value().detach().clone());
  }
  const auto objective = [&](const reference::Tensors& x) {
    size_t next = 2;
    for (Tensor& parameter : module.parameters()) parameter.copy_(x[next++]);
    return (module.forward(x[0], x[1], lengths).context * probe).sum();
  };
  reference::Tensors variables = reference::leaves({inputs[0], inputs[1]});
  const Tensor value = (module.forward(variables[0], variables[1], lengths).context * probe).sum();
  for (const Tensor& parameter : module.parameters()) variables.push_back(parameter);
  const auto derivatives = reference::gradients(value, variables, false);
  at::NoGradGuard no_gradients;
  reference::expect_central_differences(objective, inputs, derivatives, names);
}

TEST(FixedErrors, SayWhatALearnedQueryCannotTake) {
  expect_errors({
      {[] { FixedAttention({.score = "general"}); }, "score general has a parameter W"},
      {[] { FixedAttention({.score = "location"}); }, "score location depends on positions"},
      {[] { FixedAttention({.score = "aditive"}); }, "did you mean additive"},
      {[] { FixedAttention({.normaliser = "softmx"}); }, "did you mean softmax"},
      {[] { FixedAttention({.normaliser = "hard"}); }, "hard gives the scores no gradient"},
      {[] { FixedAttention({.normaliser = "monotonic"}); }, "monotonic depends on the order"},
      {[] { FixedAttention({.score = "dot", .normaliser = "linear"}); },
       "linear divides by the sum of the scores, which may be negative here; take softmax"},
      {[] { FixedAttention({.queries = 0}); }, "queries is 0; it must be 1 or more"},
      {[] {
         const Tensor set = torch::zeros({2, 3, 5});
         FixedAttention({.depth = 4}).forward(set, set);
       },
       "keys have shape [2, 3, 5]; they must be [B, S, 4]"},
  });
}

}  // namespace fixed_attention_test
}  // namespace attend
