#include "attend/nn/pointer.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "tests/ops/differences.h"
#include "tests/support/autocast.h"

namespace attend {
namespace pointer_test {

using at::Tensor;

double at_place(const Tensor& x, std::initializer_list<int64_t> place) {
  Tensor element = x;
  for (const int64_t i : place) element = element[i];
  return element.item<double>();
}

// See et al. 2017, eq. 9, token by token.
TEST(Pointer, MixesCopiesWithTheVocabulary) {
  torch::manual_seed(1);
  const int64_t rows = 3, tokens = 7, length = 5;
  const Tensor logits = 3 * torch::randn({rows, tokens}, torch::kDouble);
  const Tensor gate = torch::randn({rows, 1}, torch::kDouble);
  const Tensor weights = torch::randn({rows, length}, torch::kDouble).softmax(-1);
  // Rows with repeated tokens, and tokens that occur once.
  const Tensor source =
      torch::tensor({{4, 5, 4, 6, 4}, {1, 2, 3, 4, 5}, {6, 6, 6, 6, 6}}, torch::kLong);
  const Tensor found = copying_log_probabilities(logits, gate, weights, source).exp();
  for (int64_t row = 0; row < rows; ++row) {
    const double generating = 1 / (1 + std::exp(-at_place(gate, {row, 0})));
    double normaliser = 0, sum = 0;
    for (int64_t w = 0; w < tokens; ++w) normaliser += std::exp(at_place(logits, {row, w}));
    for (int64_t w = 0; w < tokens; ++w) {
      double expected = generating * std::exp(at_place(logits, {row, w})) / normaliser;
      for (int64_t i = 0; i < length; ++i)
        if (source[row][i].item<int64_t>() == w)
          expected += (1 - generating) * at_place(weights, {row, i});
      EXPECT_NEAR(at_place(found, {row, w}), expected, 1e-14) << row << " " << w;
      sum += at_place(found, {row, w});
    }
    EXPECT_NEAR(sum, 1, 1e-13);
  }
}

TEST(Pointer, GivesATokenThatTheVocabularyRulesOutItsWeight) {
  const Tensor logits = torch::tensor({{0.0, -1e4, 0.0}}, torch::kDouble);
  const Tensor gate = torch::zeros({1, 1}, torch::kDouble);
  const Tensor weights = torch::tensor({{0.25, 0.75}}, torch::kDouble);
  const Tensor found =
      copying_log_probabilities(logits, gate, weights, torch::tensor({{0, 1}})).exp();
  EXPECT_NEAR(at_place(found, {0, 1}), 0.375, 1e-14);
  // A token that is neither generated nor copied is improbable, but its logarithm is finite.
  const Tensor nowhere = copying_log_probabilities(logits, gate, weights, torch::tensor({{0, 2}}));
  EXPECT_NEAR(at_place(nowhere, {0, 1}), std::log(1e-30), 1e-9);
}

TEST(Pointer, HasTheGradientsOfDifferences) {
  torch::manual_seed(2);
  const Tensor source = torch::tensor({{{3, 1, 3}, {0, 0, 2}}}, torch::kLong);
  const Tensor seeds = torch::randn({1, 2, 4}, torch::kDouble);
  reference::expect_gradients(
      [&](const reference::Tensors& x) {
        return (copying_log_probabilities(x[0], x[1], x[2].softmax(-1), source) * seeds).sum();
      },
      {torch::randn({1, 2, 4}, torch::kDouble), torch::randn({1, 2, 1}, torch::kDouble),
       torch::randn({1, 2, 3}, torch::kDouble)},
      {"logits", "gate", "scores"});
}

TEST(Pointer, TakesWhatAutocastGivesBesideWeightsOfFloat32) {
  torch::manual_seed(4);
  const Tensor logits = torch::randn({2, 7}), gate = torch::randn({2, 1});
  const Tensor weights = torch::randn({2, 3}).softmax(-1);
  const Tensor source = torch::tensor({{4, 5, 4}, {1, 2, 3}}, torch::kLong);
  const auto log_probabilities = [&](const Tensor& l, const Tensor& g) {
    return copying_log_probabilities(l, g, weights, source);
  };
  const Tensor narrow_logits = logits.to(torch::kBFloat16), narrow_gate = gate.to(torch::kBFloat16);
  const Tensor wanted =
      log_probabilities(narrow_logits.to(torch::kFloat), narrow_gate.to(torch::kFloat));
  const test::Autocast on;
  const Tensor found = log_probabilities(narrow_logits, narrow_gate);
  EXPECT_EQ(found.scalar_type(), torch::kFloat);
  // Sums of two to four float32 terms, with logarithms below 10.
  EXPECT_TRUE(torch::allclose(found, wanted, 1e-5, 1e-5));
}

// See et al. 2017, eq. 12: c_t is the sum of the weights of earlier steps.
TEST(Pointer, CoverageCostsLookingTwice) {
  torch::manual_seed(3);
  const Tensor weights = torch::randn({2, 4, 3}, torch::kDouble).softmax(-1);
  const Tensor counts = torch::tensor({{true, true, true, true}, {true, true, false, false}});
  double expected = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 4; ++t) {
      if (!counts[b][t].item<bool>()) continue;
      for (int64_t i = 0; i < 3; ++i) {
        double before = 0;
        for (int64_t earlier = 0; earlier < t; ++earlier)
          before += at_place(weights, {b, earlier, i});
        expected += std::min(at_place(weights, {b, t, i}), before);
      }
    }
  }
  EXPECT_NEAR(coverage_loss(weights, counts).item<double>(), expected, 1e-13);
  reference::expect_gradients(
      [&](const reference::Tensors& x) { return coverage_loss(x[0].softmax(-1), counts); },
      {torch::randn({2, 4, 3}, torch::kDouble)}, {"scores"});
}

}  // namespace pointer_test
}  // namespace attend
