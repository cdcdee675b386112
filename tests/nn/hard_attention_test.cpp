#include "attend/nn/hard_attention.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <iostream>
#include <limits>

#include "attend/ops/attention.h"

namespace attend {
namespace hard_attention_test {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(HardDraw, IsTheLogProbabilityAndTheEntropyOfTheSoftmax) {
  torch::manual_seed(1);
  const Tensor scores = torch::randn({2, 3, 4}, torch::kDouble);
  scores[0][0][2] = -infinity;
  const Tensor weights = torch::zeros_like(scores);
  const int64_t drawn[2][3] = {{1, 0, 3}, {2, 2, 0}};
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 3; ++t) weights[b][t][drawn[b][t]] = 1;
  const auto [log_probability, entropy] = hard_draw(scores, weights);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 3; ++t) {
      double sum = 0, expected = 0;
      for (int64_t j = 0; j < 4; ++j) sum += std::exp(scores[b][t][j].item<double>());
      for (int64_t j = 0; j < 4; ++j) {
        const double p = std::exp(scores[b][t][j].item<double>()) / sum;
        if (p > 0) expected -= p * std::log(p);
      }
      const double p = std::exp(scores[b][t][drawn[b][t]].item<double>()) / sum;
      EXPECT_NEAR(log_probability[b][t].item<double>(), std::log(p), 1e-12);
      EXPECT_NEAR(entropy[b][t].item<double>(), expected, 1e-12);
    }
  }
}

TEST(HardDraw, OfNoKeyIsNothingWithFiniteGradients) {
  const Tensor scores = torch::tensor({{-infinity, -infinity}, {0.5, -infinity}}, torch::kDouble);
  const Tensor variable = scores.clone().requires_grad_();
  const Tensor weights = torch::tensor({{0.0, 0.0}, {1.0, 0.0}}, torch::kDouble);
  const auto [log_probability, entropy] = hard_draw(variable, weights);
  EXPECT_EQ(log_probability.abs().sum().item<double>(), 0);
  EXPECT_EQ(entropy.abs().sum().item<double>(), 0);
  (log_probability + entropy).sum().backward();
  EXPECT_EQ(variable.grad().abs().sum().item<double>(), 0);
}

TEST(RewardsToGo, AddsUpWhatFollows) {
  const Tensor rewards = torch::tensor({{1.0, 2.0, 4.0}}, torch::kDouble);
  EXPECT_TRUE(
      torch::equal(rewards_to_go(rewards), torch::tensor({{7.0, 6.0, 4.0}}, torch::kDouble)));
}

// Two draws of one of three keys; the second reward depends on both draws.
class Reinforce : public testing::Test {
 protected:
  static constexpr int64_t samples = 20000;

  void SetUp() override {
    torch::manual_seed(2);
    theta = torch::randn({2, 3}, torch::kDouble);
    first = torch::randn({3}, torch::kDouble) - 3;
    second = torch::randn({3, 3}, torch::kDouble) - 3;
  }

  // d(-E[first reward + second reward]) / d theta, summed over all nine outcomes.
  Tensor exact() const {
    const Tensor variable = theta.clone().requires_grad_();
    const Tensor p = variable.softmax(-1);
    Tensor expected = torch::zeros({}, torch::kDouble);
    for (int64_t a = 0; a < 3; ++a)
      for (int64_t b = 0; b < 3; ++b)
        expected = expected + p[0][a] * p[1][b] * (first[a] + second[a][b]);
    (-expected).backward();
    return variable.grad();
  }

  // One-hot draws from the operator, [samples, 3].
  Tensor draw(const Tensor& scores, uint64_t seed) const {
    const Tensor query = scores.expand({samples, 1, 3}).contiguous();
    const Tensor key = torch::zeros({samples, 3, 1}, torch::kDouble);
    const Tensor value = torch::eye(3, torch::kDouble).expand({samples, 3, 3}).contiguous();
    const AttentionSpec spec{.score = "location", .normaliser = Normaliser("hard", seed)};
    return attention(query, key, value, spec).context.squeeze(1);
  }

  // The estimate of each sample, [samples, 2, 3].
  Tensor estimates(double baseline) const {
    const Tensor variable = theta.expand({samples, 2, 3}).clone().requires_grad_();
    const Tensor one = draw(theta[0], 11), two = draw(theta[1], 12);
    const Tensor weights = at::stack({one, two}, 1);
    const Tensor rewards = at::stack({one.mv(first), (one.mm(second) * two).sum(-1)}, 1);
    const Tensor remaining = torch::tensor({2.0, 1.0}, torch::kDouble);
    reinforce_loss(hard_draw(variable, weights).log_probability, rewards_to_go(rewards),
                   baseline * remaining)
        .backward();
    return variable.grad();
  }

  static void expect_unbiased(const Tensor& estimates, const Tensor& exact) {
    // Five standard errors: one of the six means is further off once in 300,000 seeds.
    const Tensor error = estimates.std(0) / std::sqrt(static_cast<double>(samples));
    const Tensor distance = (estimates.mean(0) - exact).abs();
    EXPECT_TRUE((distance <= 5 * error).all().item<bool>()) << distance << error;
  }

  Tensor theta, first, second;
};

TEST_F(Reinforce, IsUnbiasedAndABaselineLowersItsVariance) {
  const Tensor gradient = exact();
  const Tensor plain = estimates(0), reduced = estimates(-3);
  expect_unbiased(plain, gradient);
  expect_unbiased(reduced, gradient);
  const auto variance = [](const Tensor& each) { return each.var(0).sum().item<double>(); };
  std::cout << "variance of the estimate: " << variance(plain) << " without a baseline, "
            << variance(reduced) << " with one\n";
  RecordProperty("variance_without_baseline", std::to_string(variance(plain)));
  RecordProperty("variance_with_baseline", std::to_string(variance(reduced)));
  // Rewards have mean -3 and variance 1: the mean contributes most of their square.
  EXPECT_LT(variance(reduced), variance(plain) / 2);
}

TEST_F(Reinforce, ABaselineThatSeesTheDrawIsBiased) {
  // Shows that the test above can fail: with its own reward as baseline a draw has no gradient.
  const Tensor one = draw(theta[0], 11);
  const Tensor variable = theta[0].expand({samples, 1, 3}).clone().requires_grad_();
  const Tensor rewards = one.mv(first).unsqueeze(-1);
  reinforce_loss(hard_draw(variable, one.unsqueeze(1)).log_probability, rewards, rewards)
      .backward();
  EXPECT_EQ(variable.grad().abs().sum().item<double>(), 0);
}

TEST(MovingAverage, IsTheOneOfThePaperUnderGradientDescent) {
  torch::manual_seed(3);
  MovingAverage average(-2);
  average.to(torch::kDouble);
  torch::optim::SGD descent(average.parameters(), torch::optim::SGDOptions(0.05));
  EXPECT_NEAR(average.value().item<double>(), -2, 1e-6);  // initialised in float32
  double expected = average.value().item<double>();
  for (int step = 0; step < 5; ++step) {
    const Tensor rewards = torch::randn({2, 3}, torch::kDouble);
    const Tensor counts = torch::tensor({{true, true, false}, {true, false, false}});
    descent.zero_grad();
    (average.loss(rewards, counts) / 3).backward();
    descent.step();
    const double mean = (rewards[0][0] + rewards[0][1] + rewards[1][0]).item<double>() / 3;
    expected = 0.9 * expected + 0.1 * mean;  // Xu et al. 2015, 4.1
    EXPECT_NEAR(average.value().item<double>(), expected, 1e-12);
  }
}

}  // namespace hard_attention_test
}  // namespace attend
