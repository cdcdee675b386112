// Tests of linear attention with features beyond float32: only the ratio of scores matters.
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "attend/ops/linear_state.h"
#include "tests/ops/differences.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace linear_sizes_test {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor column(const std::vector<float>& x) {
  return at::tensor(x, at::kFloat).view({-1, 1}).set_requires_grad(true);
}

// One row by its formula in float64: sums of scores beyond float32.
TEST(Linear, KeepsTheRatioOfSmallScores) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (const Path path : {Path::composed, Path::fused}) {
    for (const auto& [q, k] : {std::pair{1.F, -90.F},
                               {1.F, -104.F},
                               {-46.F, -46.F},
                               {-55.F, -55.F},
                               {-1000.F, -1000.F}}) {
      SCOPED_TRACE(fmt::format("{}, {}", q, k));
      const Tensors x = {column({q}), column({k, k - 1}), column({1, 2})};
      const auto [context, lse] = attention(
          x[0], x[1], x[2], {.score = "elu_features", .normaliser = "linear", .path = path});
      const double w = sigmoid(-1);  // weight of the second key
      const double size = (q > 0 ? std::log1p(q) : q) + k;
      EXPECT_NEAR(context.item<double>(), 1 + w, 1e-6);
      EXPECT_NEAR(lse.item<double>(), size + std::log1p(std::exp(-1.0)), 1e-6 * std::abs(size));
      const Tensors found = gradients(context.sum(), x, false);
      EXPECT_NEAR(found[0].item<double>(), 0, 1e-6);
      EXPECT_NEAR(found[1][0].item<double>(), -w * (1 - w), 1e-6);
      EXPECT_NEAR(found[1][1].item<double>(), w * (1 - w), 1e-6);
      EXPECT_NEAR(found[2][0].item<double>(), 1 - w, 1e-6);
      EXPECT_NEAR(found[2][1].item<double>(), w, 1e-6);
    }
    // Custom features of similar size.
    const Tensors x = {column({1e-20F}), column({3e-25F, 1e-25F}), column({1, 2})};
    const auto context =
        attention(x[0], x[1], x[2], {.score = "dot", .normaliser = "linear", .path = path}).context;
    EXPECT_NEAR(context.item<double>(), 1.25, 1e-6);
    EXPECT_NEAR(gradients(context.sum(), x, false)[2][1].item<double>(), 0.25, 1e-6);
  }
}

// The first key has features that are exp(-89) times the features of the next key.
TEST(Linear, MeasuresAKeyFromThoseSeenBeforeIt) {
  const Score score("positive_features", {{"omega", at::ones({1, 1})}});
  for (const float far : {14.4F, 40.F}) {
    for (const Path path : {Path::composed, Path::fused}) {
      const Tensors x = {column({0, 0}), column({far, 0}), column({3, 5})};
      const auto [context, lse] =
          attention(x[0], x[1], x[2],
                    {.score = score, .scope = causal(), .normaliser = "linear", .path = path});
      const float size = far - far * far / 2;
      EXPECT_NEAR(context[0].item<double>(), 3, 1e-6);
      EXPECT_NEAR(context[1].item<double>(), 5, 1e-6);
      EXPECT_NEAR(lse[0].item<double>(), size, 1e-6 * std::abs(size));
      const Tensors found = gradients(context.sum(), x, false);
      EXPECT_TRUE(at::allclose(found[2], at::ones({2, 1}), 1e-6, 1e-6));
      EXPECT_TRUE(at::allclose(found[1], at::zeros({2, 1}), 0, 1e-6));
    }
    LinearState state;
    const auto step = [&](float k, float v) {
      return state.step(at::zeros({1, 1}), at::full({1, 1}, k), at::full({1, 1}, v), score)
          .context.item<double>();
    };
    EXPECT_NEAR(step(far, 3), 3, 1e-6);
    EXPECT_NEAR(step(0, 5), 5, 1e-6);
    EXPECT_NEAR(step(far, 3), 5, 1e-6);
  }
}

// The features of one sequence differ by hundreds of powers of e.
TEST(PositiveFeatures, HaveFiniteCausalGradientsOfAnySize) {
  const int64_t depth = 64, features = 128, length = 1000;
  for (const double size : {4.0, 8.0}) {
    for (const uint64_t seed : {1, 2, 3}) {
      auto generator = at::detail::createCPUGenerator(seed);
      const auto draw = [&](at::IntArrayRef shape) { return at::randn(shape, generator); };
      const Score score("positive_features", {{"omega", draw({features, depth})}});
      const Tensors x = leaves(
          {draw({length, depth}) * size, draw({length, depth}) * size, draw({length, depth})});
      const auto [context, lse] = attention(
          x[0], x[1], x[2],
          {.score = score, .scope = causal(), .normaliser = "linear", .path = Path::fused});
      for (const Tensor& gradient : gradients(context.square().sum(), x, false))
        EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << size << " " << seed;
      // Averages of values; the first is the value of the first key.
      EXPECT_TRUE(at::allclose(context[0], x[2][0]));
      EXPECT_TRUE((lse > -infinity).all().item<bool>());
    }
  }
}

AttentionResult attend_to(const Problem& p, Path path) {
  return attention(p.query, p.key, p.value,
                   {.score = p.score, .normaliser = "linear", .path = path});
}

// If all queries see the same keys, no row is lost: its largest term is kept.
TEST(PositiveFeatures, OfTheSameKeysLoseNoRow) {
  const Sizes sizes = {
      .queries = 200, .keys = 150, .query_depth = 8, .key_depth = 8, .attention_depth = 16};
  Problem problem =
      make_problem(score_row("positive_features"), sizes, Given::all, false, at::kDouble, 16);
  problem.query = problem.query * 20;
  problem.key = problem.key * 20;
  const auto wanted = attend_to(problem, Path::composed);
  for (const Path path : {Path::composed, Path::fused}) {
    Problem single = problem;
    for (Tensor* x : {&single.query, &single.key, &single.value}) *x = x->to(at::kFloat);
    single.score = Score("positive_features",
                         {{"omega", problem.score.parameters().at("omega").to(at::kFloat)}});
    const auto [context, lse] = attend_to(single, path);
    // Exponents of some thousands have relative errors of 2^-24, sums have several roundings.
    const double tolerance = 16 * 0x1p-24 * wanted.lse.abs().max().item<double>();
    EXPECT_TRUE(at::allclose(lse.to(at::kDouble), wanted.lse, tolerance, 0));
    EXPECT_TRUE(
        at::allclose(context.to(at::kDouble), wanted.context, 8 * tolerance, 8 * tolerance));
  }
}

// Two distant features: one is large for the query and negligible for the key.
TEST(Linear, CountsAsZeroWhatIsFarBelowItsLargest) {
  const Score score("positive_features", {{"omega", at::tensor({20.F, -20.F}).view({2, 1})}});
  // Logarithms of features: 20 x and -20 x, minus a common term.
  for (const float x : {1.5F, 2.F}) {
    const Tensor q = at::tensor({0.F, x}).view({2, 1}), k = at::tensor({0.F, -x}).view({2, 1});
    const Tensor v = at::tensor({1.F, 2.F}).view({2, 1});
    for (const Path path : {Path::composed, Path::fused}) {
      // With a mask of keys query 1 sees only key 1, at exp(-40 x) of the largest features.
      const auto [context, lse] = attention(q, k, v,
                                            {.score = score,
                                             .scope = causal() & dense_mask(at::arange(2) == 1),
                                             .normaliser = "linear",
                                             .path = path});
      const bool lost = x == 2.F;  // exp(-80) is below 2^-100
      EXPECT_EQ(context[1].item<float>(), lost ? 0.F : 2.F);
      EXPECT_EQ(lse[1].item<double>() == -infinity, lost);
    }
  }
}

}  // namespace linear_sizes_test
}  // namespace attend::reference
