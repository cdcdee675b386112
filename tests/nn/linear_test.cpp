#include "attend/nn/linear.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <memory>

#include "attend/nn/token_loss.h"
#include "tests/support/autocast.h"
#include "tests/support/files.h"

namespace attend {
namespace linear_test {

using at::Tensor;

const Pass bfloat16{.bfloat16 = true};

struct Size {
  int64_t rows, from, to;
  bool bias;
};

class LinearOf : public testing::TestWithParam<Size> {};

INSTANTIATE_TEST_SUITE_P(Sizes, LinearOf,
                         testing::Values(Size{1, 1, 1, false}, Size{3, 59, 111, true},
                                         Size{111, 128, 3, true}, Size{59, 256, 128, false}));

// Each factor and the result have a relative error of up to 2^-8 (8 bits, rounded to nearest). One
// percent more covers products of these errors and float32 sums.
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
  const Tensor y = linear(x, weight, bias, bfloat16);
  ASSERT_EQ(y.scalar_type(), at::kFloat);
  const auto gradients = torch::autograd::grad({y}, leaves, {slope});

  const Tensor in = x.detach()[0].to(at::kDouble), matrix = weight.detach().to(at::kDouble);
  const Tensor out = slope[0].to(at::kDouble);
  Tensor wanted = at::matmul(in, matrix.t());
  if (size.bias) wanted = wanted + bias.detach().to(at::kDouble);
  expect_within(y[0].detach(), wanted, bound(in, matrix.t()));
  expect_within(gradients[0][0], at::matmul(out, matrix), bound(out, matrix));
  expect_within(gradients[1], at::matmul(out.t(), in), bound(out.t(), in));
  // A sum without products: as exact as float32.
  if (size.bias) {
    EXPECT_TRUE(torch::allclose(gradients[2].to(at::kDouble), out.sum(0), 1e-5, 1e-5));
  }
}

TEST(Linear, InBFloat16HasNoSecondDerivative) {
  const Tensor x = torch::randn({2, 3}).requires_grad_(), weight = torch::randn({4, 3});
  const Tensor y = linear(x, weight, Tensor(), bfloat16).square().sum();
  EXPECT_THAT(test::error_of([&] {
                torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
              }),
              testing::HasSubstr("no second derivative"));
}

TEST(Linear, OtherwiseIsLibTorchs) {
  torch::manual_seed(6);
  Linear layer(7, 5);
  const Tensor x = torch::randn({2, 3, 7});
  EXPECT_TRUE(at::equal(layer->forward(x, {}), at::linear(x, layer->weight, layer->bias)));
  EXPECT_FALSE(at::equal(layer->forward(x, bfloat16), at::linear(x, layer->weight, layer->bias)));
  layer->to(at::kDouble);
  const Tensor exact = x.to(at::kDouble);
  EXPECT_TRUE(
      at::equal(layer->forward(exact, bfloat16), at::linear(exact, layer->weight, layer->bias)));
}

// One weight with several biases, and without one.
TEST(Linear, InARecurrenceAddsTheBiasThatItIsGiven) {
  const Tensor x = torch::ones({3, 2}), weight = torch::eye(2).requires_grad_();
  const Tensor ten = torch::full({2}, 10.0).requires_grad_();
  const Tensor twenty = torch::full({2}, 20.0).requires_grad_();
  Recurrence recurrence;
  const Pass pass{.recurrence = &recurrence};
  const Tensor first = linear(x, weight, ten, pass), second = linear(x, weight, twenty, pass);
  const Tensor third = linear(x, weight, Tensor(), pass);
  EXPECT_TRUE(at::equal(first, torch::full({3, 2}, 11.0)));
  EXPECT_TRUE(at::equal(second, torch::full({3, 2}, 21.0)));
  EXPECT_TRUE(at::equal(third, x));
  const auto gradients =
      torch::autograd::grad({(first + 2 * second + 3 * third).sum()}, {ten, twenty, weight});
  EXPECT_TRUE(at::equal(gradients[0], torch::full({2}, 3.0)));
  EXPECT_TRUE(at::equal(gradients[1], torch::full({2}, 6.0)));
  EXPECT_TRUE(at::equal(gradients[2], torch::full({2, 2}, 18.0)));
}

// A recurrence of four steps with one map: each step reads the last step's output. Also the
// gradients of the sum of all outputs.
struct Steps {
  explicit Steps(at::ScalarType type = at::kFloat) {
    torch::manual_seed(9);
    // Small, so that tanh passes errors on nearly unchanged.
    const auto leaf = [&](at::IntArrayRef shape) {
      return (torch::randn(shape, type) / 3).requires_grad_();
    };
    first = leaf({5, 7});
    weight = leaf({7, 7});
    bias = leaf({7});
  }

  Tensor sum(const Pass& pass = {}) const {
    Tensor state = first, sum;
    for (int64_t t = 0; t < 4; ++t) {
      state = linear(state, weight, bias, pass).tanh();
      sum = sum.defined() ? sum + state.square().sum() : state.square().sum();
    }
    return sum;
  }

  std::vector<Tensor> leaves() const { return {first, weight, bias}; }

  Tensor first, weight, bias;
};

// Compares only the products: LibTorch's gradients are bfloat16, too.
TEST(Linear, InARecurrenceIsLibTorchsWithinAutocast) {
  const Steps steps;
  const auto gradients = [&](bool recurs) {
    Recurrence recurrence;
    Tensor sum;
    {
      const test::Autocast on;
      sum = steps.sum({.recurrence = recurs ? &recurrence : nullptr});
    }
    return torch::autograd::grad({sum}, steps.leaves());
  };
  const auto found = gradients(true), wanted = gradients(false);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], wanted[i])) << i;
}

void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                  double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_LT((found[i] - wanted[i]).norm().item<double>(),
              tolerance * wanted[i].norm().item<double>())
        << i;
}

TEST(Linear, StepsOfARecurrenceHaveTheGradientsOfEach) {
  const Steps steps;
  const auto wanted = torch::autograd::grad({steps.sum()}, steps.leaves());
  Recurrence recurrence;
  const Tensor sum = steps.sum({.recurrence = &recurrence});
  for (int i = 0; i < 2; ++i)  // the second pass starts without leftovers of the first
    expect_close(torch::autograd::grad({sum}, steps.leaves(), {}, /*retain_graph=*/true), wanted,
                 1e-5);
  // Gradients that were not requested are not kept for the next call either.
  torch::autograd::grad({sum}, {steps.first}, {}, /*retain_graph=*/true);
  expect_close(torch::autograd::grad({sum}, {steps.bias}, {}, /*retain_graph=*/true), {wanted[2]},
               1e-5);
  expect_close(torch::autograd::grad({sum}, {steps.weight}), {wanted[1]}, 1e-5);
}

TEST(Linear, StepsOfARecurrenceInBFloat16AreNearTheExact) {
  const Steps steps;
  const auto wanted = torch::autograd::grad({steps.sum()}, steps.leaves());
  const auto each = torch::autograd::grad({steps.sum(bfloat16)}, steps.leaves());
  Recurrence recurrence;
  const auto together = torch::autograd::grad({steps.sum(bfloat16.in(recurrence))}, steps.leaves());
  expect_close(together, wanted, 0.02);
  // They differ by the order of sums and by the rounding of four gradient sums to bfloat16.
  expect_close(together, each, 0.01);
}

TEST(Linear, StepsOfARecurrenceHaveSecondDerivatives) {
  const Steps steps(at::kDouble);
  const auto second = [&](const Pass& pass) {
    const auto first = torch::autograd::grad({steps.sum(pass)}, steps.leaves(), {},
                                             /*retain_graph=*/true, /*create_graph=*/true);
    Tensor squares;
    for (const Tensor& each : first)
      squares = squares.defined() ? squares + each.square().sum() : each.square().sum();
    return torch::autograd::grad({squares}, steps.leaves());
  };
  const auto wanted = second({});
  Recurrence recurrence;
  expect_close(second({.recurrence = &recurrence}), wanted, 1e-12);
}

TEST(Linear, ARecurrenceMayHoldAWeight) {
  Steps steps;
  const Tensor all = torch::autograd::grad({steps.sum()}, {steps.bias})[0];
  steps.weight.requires_grad_(false);
  Recurrence recurrence;
  expect_close(torch::autograd::grad({steps.sum({.recurrence = &recurrence})}, {steps.bias}), {all},
               1e-5);
}

TEST(Linear, ARecurrenceSharesAWeightWhereGradientsAreRecorded) {
  const auto is_shared = [](const Pass& pass) {
    const Tensor weight = torch::ones({2, 2}).requires_grad_(), x = torch::ones({1, 2});
    const auto node = [&] {
      return linear(x, weight, Tensor(), pass).grad_fn()->next_edge(1).function;
    };
    return node() == node();
  };
  EXPECT_FALSE(is_shared({}));
  Recurrence recurrence;
  const Pass pass{.recurrence = &recurrence};
  EXPECT_TRUE(is_shared(pass));
  const at::NoGradGuard no_gradient;
  const Tensor x = torch::randn({3, 4}), weight = torch::randn({5, 4});
  EXPECT_TRUE(at::equal(linear(x, weight, Tensor(), pass), at::linear(x, weight)));
}

// A logit of 16 products near 1 has an error of at most about 16 x 3 x 2^-8 = 0.2. The loss is a
// mean over 300 rows with errors of both signs. Its error and the error of the gradients are far
// smaller.
TEST(Linear, TokenLossInBFloat16IsNearTheExact) {
  torch::manual_seed(7);
  const Tensor vectors = torch::randn({300, 16}).requires_grad_();
  const Tensor weight = torch::randn({59, 16}).requires_grad_();
  const Tensor bias = torch::randn({59}).requires_grad_();
  const Tensor target = torch::randint(0, 59, {300}, torch::kLong);
  const auto run = [&](bool enabled) {
    const Tensor loss = token_loss(vectors, {weight, bias}, target, {.bfloat16 = enabled}, 0.1, 0);
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

}  // namespace linear_test
}  // namespace attend
