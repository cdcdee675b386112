#include "attend/nn/token_loss.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "tests/support/autocast.h"
#include "tests/support/files.h"

namespace attend {
namespace token_loss_test {

using at::Tensor;
using test::error_of;

// The definition, with all logits at once.
Tensor by_definition(const Tensor& vectors, const TokenOutput& output, const Tensor& target,
                     double smoothing, int64_t ignored, int64_t first = 0) {
  Tensor logits = at::matmul(vectors, output.weight.t());
  if (output.bias.defined()) logits = logits + output.bias;
  const Tensor log_p = logits - logits.logsumexp(1, /*keepdim=*/true);
  Tensor loss = at::zeros({}, vectors.options());
  for (int64_t row = 0; row < target.size(0); ++row) {
    const auto right = target[row].item<int64_t>();
    if (right == ignored) continue;
    loss =
        loss - (1 - smoothing) * log_p[row][right] - smoothing * log_p[row].slice(0, first).mean();
  }
  return loss;
}

struct Case {
  int64_t rows, tokens, depth;
  double smoothing;
  bool bias;
};

class TokenLossOf : public testing::TestWithParam<Case> {};

// 600 rows are two chunks and part of a third.
INSTANTIATE_TEST_SUITE_P(Sizes, TokenLossOf,
                         testing::Values(Case{1, 5, 3, 0, false}, Case{59, 7, 1, 0.1, true},
                                         Case{600, 111, 3, 0.1, false}, Case{600, 59, 3, 0, true}));

// Rounding: rows x tokens terms near 1, each with an error of about depth x 1e-16.
TEST_P(TokenLossOf, AndItsGradientsAreThoseOfTheLogits) {
  const Case c = GetParam();
  torch::manual_seed(3);
  const auto leaf = [](std::vector<int64_t> shape) {
    return torch::randn(shape, torch::kDouble).requires_grad_();
  };
  const Tensor vectors = leaf({c.rows, c.depth}), weight = leaf({c.tokens, c.depth});
  const Tensor bias = c.bias ? leaf({c.tokens}) : Tensor();
  Tensor target = torch::randint(0, c.tokens, {c.rows}, torch::kLong);
  if (c.rows > 1) target[c.rows / 2] = 0;  // at least one is ignored
  std::vector<Tensor> leaves = {vectors, weight};
  if (c.bias) leaves.push_back(bias);
  const Tensor found = token_loss(vectors, {weight, bias}, target, {}, c.smoothing, 0);
  const Tensor expected = by_definition(vectors, {weight, bias}, target, c.smoothing, 0);
  EXPECT_NEAR(found.item<double>(), expected.item<double>(), 1e-12 * c.rows * 20);
  const auto gradients = torch::autograd::grad({found * 0.25}, leaves);
  const auto wanted = torch::autograd::grad({expected * 0.25}, leaves);
  for (size_t i = 0; i < leaves.size(); ++i)
    EXPECT_TRUE(torch::allclose(gradients[i], wanted[i], 1e-10, 1e-12)) << i;
}

// A frozen input does not affect the gradients of the others.
TEST(TokenLoss, TrainsWhateverIsNotFrozen) {
  torch::manual_seed(5);
  const Tensor target = torch::randint(1, 7, {300}, torch::kLong);
  for (int mask = 1; mask < 8; ++mask) {
    std::vector<Tensor> all = {torch::randn({300, 3}, torch::kDouble),
                               torch::randn({7, 3}, torch::kDouble),
                               torch::randn({7}, torch::kDouble)};
    std::vector<Tensor> trained;
    for (size_t i = 0; i < 3; ++i)
      if ((mask >> i & 1) != 0) trained.push_back(all[i].requires_grad_());
    const auto found =
        torch::autograd::grad({token_loss(all[0], {all[1], all[2]}, target, {}, 0.1, 0)}, trained);
    const auto wanted =
        torch::autograd::grad({by_definition(all[0], {all[1], all[2]}, target, 0.1, 0)}, trained);
    for (size_t i = 0; i < trained.size(); ++i)
      EXPECT_TRUE(torch::allclose(found[i], wanted[i], 1e-10, 1e-12)) << mask << " " << i;
  }
}

TEST(TokenLoss, HasSecondDerivatives) {
  torch::manual_seed(6);
  const auto leaf = [](std::vector<int64_t> shape) {
    return torch::randn(shape, torch::kDouble).requires_grad_();
  };
  const std::vector<Tensor> x = {leaf({59, 3}), leaf({7, 3}), leaf({7})};
  Tensor target = torch::randint(1, 7, {59}, torch::kLong);
  target[5] = 0;  // ignored
  const auto second = [&](const Tensor& loss) {
    const auto first = torch::autograd::grad({loss}, x, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true);
    Tensor sum = torch::zeros({}, torch::kDouble);
    for (const Tensor& gradient : first) sum = sum + gradient.pow(3).sum();
    return torch::autograd::grad({sum}, x);
  };
  const auto found = second(token_loss(x[0], {x[1], x[2]}, target, {}, 0.1, 0) * 0.25);
  const auto wanted = second(by_definition(x[0], {x[1], x[2]}, target, 0.1, 0) * 0.25);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(torch::allclose(found[i], wanted[i], 1e-9, 1e-11)) << i;
}

// The same matrix also makes the vectors, as with tied embeddings.
TEST(TokenLoss, HasTheSameGradientsWithAGraph) {
  torch::manual_seed(7);
  const Tensor matrix = torch::randn({7, 3}, torch::kDouble).requires_grad_();
  const Tensor target = torch::randint(0, 7, {7}, torch::kLong);
  for (const bool itself : {false, true}) {
    const auto gradient = [&](bool create_graph) {
      const Tensor loss =
          token_loss(itself ? matrix : matrix.tanh(), {matrix, matrix.sum(1)}, target, {}, 0.1, -1);
      return torch::autograd::grad({loss}, {matrix}, {}, /*retain_graph=*/true, create_graph)[0];
    };
    EXPECT_TRUE(torch::allclose(gradient(true), gradient(false), 1e-10, 1e-12)) << itself;
  }
}

// Excluded tokens have logits of -infinity and do not affect the loss of the others.
TEST(TokenLoss, TakesLogitsOfMinusInfinity) {
  torch::manual_seed(8);
  for (const int64_t tokens : {5, 59}) {
    const Tensor vectors = torch::randn({3, 4}, torch::kDouble).requires_grad_();
    const Tensor weight = torch::randn({tokens, 4}, torch::kDouble);
    const Tensor bias = torch::zeros({tokens}, torch::kDouble);
    bias[4] = -std::numeric_limits<double>::infinity();
    bias[tokens - 1] = -std::numeric_limits<double>::infinity();
    const Tensor target = torch::arange(3);
    const Tensor found = token_loss(vectors, {weight, bias}, target, {}, 0, -1);
    ASSERT_TRUE(found.isfinite().item<bool>());
    const Tensor logits = at::matmul(vectors, weight.t()) + bias;
    const Tensor loss =
        (logits.logsumexp(1) - logits.gather(1, target.unsqueeze(1)).squeeze(1)).sum();
    EXPECT_NEAR(found.item<double>(), loss.item<double>(), 1e-12);
    EXPECT_TRUE(torch::allclose(torch::autograd::grad({found}, {vectors})[0],
                                torch::autograd::grad({loss}, {vectors})[0], 1e-10, 1e-12));
  }
}

TEST(TokenLoss, IsOfFloat32WithinAutocast) {
  torch::manual_seed(9);
  const Tensor vectors = torch::randn({5, 4}).requires_grad_(), weight = torch::randn({7, 4});
  const Tensor target = torch::arange(5);
  const auto result = [&] {
    const Tensor loss = token_loss(vectors, {weight, {}}, target, {}, 0.1, -1);
    return at::cat({loss.view({1}), torch::autograd::grad({loss}, {vectors})[0].flatten()});
  };
  const Tensor wanted = result();
  const test::Autocast on;
  EXPECT_TRUE(torch::equal(result(), wanted));
}

TEST(TokenLoss, HasForwardMode) {
  torch::manual_seed(10);
  const Tensor vectors = torch::randn({5, 4}, torch::kDouble), tangent = torch::randn_like(vectors);
  const Tensor weight = torch::randn({7, 4}, torch::kDouble), target = torch::arange(5);
  const auto loss = [&](const Tensor& x) {
    return token_loss(x, {weight, {}}, target, {}, 0.1, -1);
  };
  constexpr double step = 1e-5;  // the cube root of 1e-16
  const Tensor wanted =
      (loss(vectors + step * tangent) - loss(vectors - step * tangent)) / (2 * step);
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  {
    const Tensor found = loss(at::_make_dual(vectors, tangent, level))._fw_grad(level);
    EXPECT_NEAR(found.item<double>(), wanted.item<double>(), 1e-7);
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

// Smoothing excludes the first tokens: without any probability they cost nothing.
TEST(TokenLoss, SmoothingBeginsAtTheFirstToken) {
  torch::manual_seed(7);
  const auto leaf = [](std::vector<int64_t> shape) {
    return torch::randn(shape, torch::kDouble).requires_grad_();
  };
  for (const int64_t tokens : {3, 7, 59}) {
    const std::vector<Tensor> x = {leaf({20, 3}), leaf({tokens, 3}), leaf({tokens})};
    const Tensor target = torch::randint(0, tokens, {20}, torch::kLong);
    for (const int64_t first : {0, 1, 2}) {
      const Tensor found = token_loss(x[0], {x[1], x[2]}, target, {}, 0.1, -1, first);
      const Tensor whole =
          smoothed_cross_entropy(TokenOutput{x[1], x[2]}.logits(x[0]), target, 0.1, -1, first);
      const Tensor wanted = by_definition(x[0], {x[1], x[2]}, target, 0.1, -1, first);
      EXPECT_NEAR(found.item<double>(), wanted.item<double>(), 1e-11);
      EXPECT_NEAR(whole.item<double>(), wanted.item<double>(), 1e-11);
      const auto slopes = torch::autograd::grad({found}, x);
      const auto expected = torch::autograd::grad({wanted}, x);
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_TRUE(torch::allclose(slopes[i], expected[i], 1e-10, 1e-12)) << first;
    }
  }
  const double no = -std::numeric_limits<double>::infinity();
  const Tensor bias = torch::tensor({no, no, 0.0, 0.0}, torch::kDouble);
  const Tensor loss =
      token_loss(torch::ones({1, 1}, torch::kDouble), {torch::zeros({4, 1}, torch::kDouble), bias},
                 torch::full({1}, 3, torch::kLong), {}, 0.1, 0, 2);
  EXPECT_NEAR(loss.item<double>(), std::log(2.0), 1e-12);
}

TEST(TokenLoss, WithoutTargetsIsNothing) {
  const Tensor vectors = torch::ones({2, 3}, torch::kDouble).requires_grad_();
  const Tensor weight = torch::ones({4, 3}, torch::kDouble).requires_grad_();
  const Tensor loss = token_loss(vectors, {weight}, torch::zeros({2}, torch::kLong), {}, 0.1, 0);
  EXPECT_EQ(loss.item<double>(), 0);
  loss.backward();
  EXPECT_EQ(vectors.grad().abs().sum().item<double>(), 0);
  EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0);
}

TEST(TokenLoss, NamesATargetThatIsNoToken) {
  const Tensor ones = torch::ones({1, 3});
  EXPECT_THAT(
      error_of([&] {
        token_loss(ones, {torch::ones({4, 3})}, torch::full({1}, 4, torch::kLong), {}, 0, 0);
      }),
      testing::HasSubstr("0 .. 3"));
}

TEST(TokenLoss, NamesShapes) {
  EXPECT_THAT(error_of([] {
                token_loss(torch::ones({2, 3}), {torch::ones({4, 2})},
                           torch::zeros({2}, torch::kLong), {}, 0, 0);
              }),
              testing::HasSubstr("[2, 3], weight [4, 2], target [2]"));
}

// Repeats the draws of the network.
Tensor negatives_of(at::Generator generator, int64_t first, int64_t tokens, int64_t count) {
  return at::randint(first, tokens, {count}, generator, at::TensorOptions(at::kLong));
}

TEST(SampledTokenLoss, IsOverTheTargetAndWhatIsDrawn) {
  torch::manual_seed(4);
  constexpr int64_t rows = 30, tokens = 12, first = 2, count = 8;
  const Tensor vectors = torch::randn({rows, 3}, torch::kDouble).requires_grad_();
  const Tensor weight = torch::randn({tokens, 3}, torch::kDouble).requires_grad_();
  const Tensor bias = torch::randn({tokens}, torch::kDouble).requires_grad_();
  const Tensor target = torch::randint(0, tokens, {rows}, torch::kLong);
  at::Generator generator = at::detail::createCPUGenerator(7);
  const Pass pass{.generator = generator};
  const Tensor negatives = negatives_of(at::detail::createCPUGenerator(7), first, tokens, count);
  for (const double smoothing : {0.0, 0.2}) {
    generator.set_current_seed(7);
    const Tensor found =
        sampled_token_loss(vectors, {weight, bias}, target, pass, count, smoothing, 0, first);
    Tensor expected = at::zeros({}, vectors.options());
    int64_t collisions = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const auto right = target[row].item<int64_t>();
      if (right == 0) continue;
      std::vector<Tensor> logits = {vectors[row].dot(weight[right]) + bias[right]};
      for (int64_t i = 0; i < count; ++i) {
        const auto other = negatives[i].item<int64_t>();
        collisions += other == right ? 1 : 0;
        if (other != right) logits.push_back(vectors[row].dot(weight[other]) + bias[other]);
      }
      const Tensor logs = at::stack(logits).log_softmax(0);
      expected = expected - (1 - smoothing) * logs[0] - smoothing * logs.mean();
    }
    EXPECT_GT(collisions, 0);
    EXPECT_NEAR(found.item<double>(), expected.item<double>(), 1e-10);
    const auto gradients = torch::autograd::grad({found}, {vectors, weight, bias});
    const auto wanted = torch::autograd::grad({expected}, {vectors, weight, bias});
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(torch::allclose(gradients[i], wanted[i], 1e-9, 1e-11)) << i;
  }
}

TEST(SampledTokenLoss, DrawsByThePassAlone) {
  const Tensor x = torch::ones({2, 3});
  EXPECT_THAT(error_of([&] {
                sampled_token_loss(x, {torch::ones({4, 3})}, torch::ones({2}, torch::kLong), {}, 2,
                                   0, 0, 2);
              }),
              testing::HasSubstr("no generator"));
}

}  // namespace token_loss_test
}  // namespace attend
