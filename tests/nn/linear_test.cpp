#include "attend/nn/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <thread>

#include "attend/nn/token_loss.h"
#include "tests/support/files.h"

namespace attend {
namespace {

using at::Tensor;

struct Size {
  int64_t rows, from, to;
  bool bias;
};

class LinearOf : public testing::TestWithParam<Size> {};

INSTANTIATE_TEST_SUITE_P(Sizes, LinearOf,
                         testing::Values(Size{1, 1, 1, false}, Size{3, 59, 111, true},
                                         Size{111, 128, 3, true}, Size{59, 256, 128, false}));

// A factor, and the result, are right to 2^-8 of themselves each: 8 bits, rounded to nearest. One
// part in a hundred more is for products of these errors and for float32's sums.
Tensor bound(const Tensor& a, const Tensor& b) {
  return 3 * std::ldexp(1.01, -8) * at::matmul(a.abs(), b.abs());
}

void expect_within(const Tensor& found, const Tensor& wanted, const Tensor& tolerance) {
  const Tensor far = (found.to(at::kDouble) - wanted).abs() - tolerance;
  EXPECT_LE(far.max().item<double>(), 1e-6);
}

TEST_P(LinearOf, InBFloat16IsRightToEightBits) {
  const Size size = GetParam();
  torch::manual_seed(5);
  const auto leaf = [](std::vector<int64_t> shape) { return torch::randn(shape).requires_grad_(); };
  const Tensor x = leaf({1, size.rows, size.from}), weight = leaf({size.to, size.from});
  const Tensor bias = size.bias ? leaf({size.to}) : Tensor();
  const Tensor slope = torch::randn({1, size.rows, size.to});
  std::vector<Tensor> leaves = {x, weight};
  if (size.bias) leaves.push_back(bias);
  const BFloat16Products products(true);
  const Tensor y = linear(x, weight, bias);
  ASSERT_EQ(y.scalar_type(), at::kFloat);
  const auto gradients = torch::autograd::grad({y}, leaves, {slope});

  const Tensor in = x.detach()[0].to(at::kDouble), matrix = weight.detach().to(at::kDouble);
  const Tensor out = slope[0].to(at::kDouble);
  Tensor wanted = at::matmul(in, matrix.t());
  if (size.bias) wanted = wanted + bias.detach().to(at::kDouble);
  expect_within(y[0].detach(), wanted, bound(in, matrix.t()));
  expect_within(gradients[0][0], at::matmul(out, matrix), bound(out, matrix));
  expect_within(gradients[1], at::matmul(out.t(), in), bound(out.t(), in));
  // Never multiplied: as exact as float32 adds.
  if (size.bias) {
    EXPECT_TRUE(torch::allclose(gradients[2].to(at::kDouble), out.sum(0), 1e-5, 1e-5));
  }
}

TEST(Linear, InBFloat16HasNoSecondDerivative) {
  const Tensor x = torch::randn({2, 3}).requires_grad_(), weight = torch::randn({4, 3});
  const BFloat16Products products(true);
  const Tensor y = linear(x, weight, Tensor()).square().sum();
  EXPECT_THAT(test::error_of([&] {
                torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
              }),
              testing::HasSubstr("no second derivative"));
}

TEST(Linear, OtherwiseIsLibTorchs) {
  torch::manual_seed(6);
  Linear layer(7, 5);
  const Tensor x = torch::randn({2, 3, 7});
  EXPECT_TRUE(at::equal(layer->forward(x), at::linear(x, layer->weight, layer->bias)));
  const BFloat16Products products(true);
  EXPECT_FALSE(at::equal(layer->forward(x), at::linear(x, layer->weight, layer->bias)));
  layer->to(at::kDouble);
  const Tensor exact = x.to(at::kDouble);
  EXPECT_TRUE(at::equal(layer->forward(exact), at::linear(exact, layer->weight, layer->bias)));
}

TEST(Linear, BFloat16IsForOneThreadAndEnds) {
  EXPECT_FALSE(BFloat16Products::enabled());
  {
    const BFloat16Products products(true);
    EXPECT_TRUE(BFloat16Products::enabled());
    bool elsewhere = true;
    std::thread([&] { elsewhere = BFloat16Products::enabled(); }).join();
    EXPECT_FALSE(elsewhere);
    {
      const BFloat16Products none(false);
      EXPECT_FALSE(BFloat16Products::enabled());
    }
    EXPECT_TRUE(BFloat16Products::enabled());
  }
  EXPECT_FALSE(BFloat16Products::enabled());
}

// A logit of 16 products near 1 is right to about 16 x 3 x 2^-8 = 0.2 at the very most; the loss, a
// mean over 300 rows of both signs, and the gradients, sums over rows or tokens, to a small part.
TEST(Linear, TokenLossInBFloat16IsNearTheExact) {
  torch::manual_seed(7);
  const Tensor vectors = torch::randn({300, 16}).requires_grad_();
  const Tensor weight = torch::randn({59, 16}).requires_grad_();
  const Tensor bias = torch::randn({59}).requires_grad_();
  const Tensor target = torch::randint(0, 59, {300}, torch::kLong);
  const auto run = [&](bool enabled) {
    const BFloat16Products products(enabled);
    const Tensor loss = token_loss(vectors, {weight, bias}, target, 0.1, 0);
    auto results = torch::autograd::grad({loss}, {vectors, weight, bias});
    results.push_back(loss.detach());
    return results;
  };
  const auto exact = run(false), half = run(true);
  for (size_t i = 0; i < exact.size(); ++i) {
    const double distance = ((exact[i] - half[i]).norm() / exact[i].norm()).item<double>();
    EXPECT_LT(distance, 0.01) << i;
    EXPECT_GT(distance, 0) << i;
  }
}

}  // namespace
}  // namespace attend
