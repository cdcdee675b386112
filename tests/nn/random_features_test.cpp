#include "attend/nn/random_features.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/attention.h"

namespace attend {
namespace random_features_test {

using at::Tensor;

at::Generator seeded(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

TEST(RandomFeatures, AreOrthogonalInBlocks) {
  for (const auto& [features, depth] : {std::pair{1, 1}, {3, 59}, {59, 3}, {111, 59}, {64, 64}}) {
    const Tensor omega = orthogonal_features(features, depth, seeded(1));
    ASSERT_EQ(omega.sizes(), (at::IntArrayRef{features, depth}));
    EXPECT_EQ(omega.scalar_type(), at::kFloat);
    for (int64_t first = 0; first < features; first += depth) {
      const int64_t rows = std::min<int64_t>(depth, features - first);
      const Tensor block = omega.narrow(0, first, rows).to(at::kDouble);
      const Tensor products = at::matmul(block, block.t());
      const Tensor others = products - at::diag(products.diagonal());
      // Each number is rounded to float32 once; rows have lengths near sqrt(depth).
      EXPECT_LE(others.abs().max().item<double>(), 0x1p-23 * products.max().item<double>());
    }
  }
}

// Every row is a standard normal vector: entries have mean 0 and variance 1, squared lengths have
// mean D and variance 2 D. Each holds within four standard errors.
TEST(RandomFeatures, AreNormalVectors) {
  constexpr int64_t features = 4000, depth = 8;
  const Tensor omega = orthogonal_features(features, depth, seeded(2)).to(at::kDouble);
  const double rows = features, entries = features * depth;
  EXPECT_NEAR(omega.mean().item<double>(), 0, 4 / std::sqrt(entries));
  EXPECT_NEAR(omega.square().mean().item<double>(), 1, 4 * std::sqrt(2 / entries));
  const Tensor lengths = omega.square().sum(1);
  EXPECT_NEAR(lengths.var().item<double>(), 2 * depth,
              // The fourth central moment of chi squared is 12 D (D + 4).
              4 * std::sqrt((12.0 * depth * (depth + 4) - 4.0 * depth * depth) / rows));
  // Every axis has a random sign, so that products of neighbouring blocks also have mean 0.
  const Tensor diagonal = omega.view({-1, depth, depth}).diagonal(0, 1, 2);
  EXPECT_NEAR(diagonal.mean().item<double>(), 0, 4 / std::sqrt(rows));
}

// The mean is exp(q . k / sqrt(D)), with a smaller error than independent directions give.
TEST(RandomFeatures, EstimateTheExponential) {
  // Small vectors: estimates of long ones have tails that no number of draws averages out.
  constexpr int64_t draws = 20000, depth = 4;
  const Tensor query = at::tensor({0.4, -0.2, 0.15, 0.45}, at::kDouble);
  const Tensor key = at::tensor({0.25, 0.35, -0.3, 0.55}, at::kDouble);
  const double wanted = std::exp((query * key).sum().item<double>() / 2);
  const auto generator = seeded(3);
  const auto squared_error = [&](const Tensor& omega, double& mean) {
    const Tensor scores =
        attention_scores(query.expand({1, draws, 1, depth}), key.expand({1, draws, 1, depth}),
                         {.score = Score("positive_features", {{"omega", omega.to(at::kDouble)}})});
    mean = scores.mean().item<double>();
    return (scores - wanted).square().mean().item<double>();
  };
  Tensor orthogonal = at::empty({draws, depth, depth});
  redraw_features(orthogonal, generator);
  double mean = 0, independent_mean = 0;
  const double error = squared_error(orthogonal, mean);
  const double independent = squared_error(
      at::randn({draws, depth, depth}, generator, at::TensorOptions()), independent_mean);
  EXPECT_NEAR(mean, wanted, 4 * std::sqrt(error / draws));
  EXPECT_NEAR(independent_mean, wanted, 4 * std::sqrt(independent / draws));
  EXPECT_LT(error, independent);
}

TEST(RandomFeatures, AreRedrawnInPlace) {
  const Tensor first = orthogonal_features(5, 3, seeded(4));
  EXPECT_TRUE(at::equal(first, orthogonal_features(5, 3, seeded(4))));
  const Tensor omega = first.clone().set_requires_grad(true);
  redraw_features(omega, seeded(5));
  EXPECT_FALSE(at::equal(omega.detach(), first));
  EXPECT_TRUE(at::equal(omega.detach(), orthogonal_features(5, 3, seeded(5))));
  const Tensor heads = at::zeros({2, 5, 3}, at::kDouble);
  redraw_features(heads, seeded(6));
  EXPECT_FALSE(at::equal(heads[0], heads[1]));
}

TEST(RandomFeatures, SayWhatTheyNeed) {
  EXPECT_THROW(orthogonal_features(0, 3, seeded(7)), Error);
  EXPECT_THROW(orthogonal_features(3, 0, seeded(7)), Error);
  EXPECT_THROW(redraw_features({}, seeded(7)), Error);
  EXPECT_THROW(redraw_features(at::ones({3}), seeded(7)), Error);
}

}  // namespace random_features_test
}  // namespace attend
