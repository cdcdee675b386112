#include "attend/nn/mixture_of_experts.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <cmath>

#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"
#include "tests/support/autocast.h"
#include "tests/support/software_device.h"

namespace attend {
namespace mixture_of_experts_test {

using at::Tensor;

Pass noise_of(uint64_t seed) {
  return {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
}

struct Mixed {
  Tensor output, imbalance;
};

Mixed mix(MixtureOfExperts& module, const Tensor& x, Pass pass, const Tensor& present = {}) {
  std::vector<Tensor> penalties;
  pass.penalties = &penalties;
  const Tensor output = module.forward(x, pass, present);
  EXPECT_EQ(penalties.size(), 1U);
  return {output, penalties.at(0) / 0.1};
}

// Randomises the gates, which are initialised to zero.
MixtureOfExperts mixture(int64_t experts, int64_t chosen) {
  torch::manual_seed(static_cast<uint64_t>(experts));
  MixtureOfExperts result({.depth = 5, .hidden = 7, .experts = experts, .chosen = chosen});
  result.to(torch::kDouble);
  torch::NoGradGuard no_gradient;
  for (const char* name : {"gate", "noise"})
    result.named_parameters()[name].copy_(torch::randn({5, experts}, torch::kDouble));
  return result;
}

// Number of 40 rows that differ by more than 8 bits: a row between two experts may choose another.
int64_t rows_apart(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().amax(-1) > 5e-2 * (1 + b.abs().amax(-1))).sum().item<int64_t>();
}

// Output of one expert for one input, from its weights.
Tensor expert(MixtureOfExperts& module, int64_t i, const Tensor& x) {
  const auto parameters = module.named_parameters();
  const auto parameter = [&](const char* name) {
    return parameters[fmt::format("expert{}.{}", i, name)];
  };
  const Tensor hidden =
      (at::mv(parameter("hidden.weight"), x) + parameter("hidden.bias")).clamp_min(0);
  return at::mv(parameter("output.weight"), hidden) + parameter("output.bias");
}

// Eq. 1-5 for each input separately, without noise.
Tensor plain(MixtureOfExperts& module, const Tensor& x, int64_t experts, int64_t chosen) {
  Tensor output = at::zeros_like(x);
  for (int64_t n = 0; n < x.size(0); ++n) {
    const Tensor scores = at::mv(module.named_parameters()["gate"].t(), x[n]);
    double sum = 0;
    for (int64_t i = 0; i < experts; ++i) {
      const int64_t larger = (scores > scores[i]).sum().item<int64_t>();
      if (larger >= chosen) continue;
      const double gate = std::exp(scores[i].item<double>());
      sum += gate;
      output[n] += gate * expert(module, i, x[n]);
    }
    output[n] /= sum;
  }
  return output;
}

TEST(MixtureOfExperts, IsTheWeightedSumOfTheChosen) {
  for (const auto& [experts, chosen] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 1}, {6, 2}, {4, 4}, {59, 3}}) {
    MixtureOfExperts module = mixture(experts, chosen);
    const Tensor x = torch::randn({11, 5}, torch::kDouble);
    torch::NoGradGuard no_gradient;
    const Tensor expected = plain(module, x, experts, chosen);
    const Tensor output = module.forward(x, {});
    EXPECT_LT((output - expected).abs().max().item<double>(), 1e-13) << experts << " " << chosen;
    EXPECT_EQ(module.forward(x.slice(0, 0, 0), {}).numel(), 0);
  }
}

TEST(MixtureOfExperts, ComputesOnlyTheChosen) {
  MixtureOfExperts module = mixture(6, 2);
  const Tensor x = torch::randn({1, 5}, torch::kDouble);
  module.forward(x, {}).square().sum().backward();
  int64_t trained = 0;
  for (int64_t i = 0; i < 6; ++i)
    trained += module.named_parameters()[fmt::format("expert{}.output.bias", i)]
                   .grad()
                   .abs()
                   .sum()
                   .item<double>() > 0;
  EXPECT_EQ(trained, 2);
}

// Importance: eq. 6-7, from the gates of the definition.
TEST(MixtureOfExperts, MeasuresImportance) {
  const MixtureOfExperts module = mixture(4, 2);
  const Tensor x = torch::randn({9, 5}, torch::kDouble);
  std::vector<double> importance(4);
  for (int64_t n = 0; n < 9; ++n) {
    const Tensor scores = at::mv(module.named_parameters()["gate"].detach().t(), x[n]);
    const Tensor best = std::get<1>(scores.sort(0, true)).slice(0, 0, 2);
    const Tensor gates = scores.index_select(0, best).softmax(0);
    for (int64_t i = 0; i < 2; ++i)
      importance[static_cast<size_t>(best[i].item<int64_t>())] += gates[i].item<double>();
  }
  double mean = 0, variance = 0;
  for (const double amount : importance) mean += amount / 4;
  for (const double amount : importance) variance += (amount - mean) * (amount - mean) / 4;
  MixtureOfExperts copy = module;
  EXPECT_NEAR(mix(copy, x, {}).imbalance.item<double>(), variance / mean / mean, 1e-13);
}

// The share of draws in which an expert is chosen; the other experts keep their noise.
TEST(MixtureOfExperts, EstimatesTheLoad) {
  torch::manual_seed(5);
  constexpr int64_t draws = 40000;
  for (const int64_t chosen : {1, 2, 4, 5}) {
    const Tensor clean = torch::randn({3, 5}, torch::kDouble);
    const Tensor deviation = torch::rand({3, 5}, torch::kDouble) + 0.2;
    const Tensor noisy = clean + deviation * torch::randn({3, 5}, torch::kDouble);
    const Tensor estimate = choice_probabilities(clean, noisy, deviation, chosen);
    for (int64_t n = 0; n < 3; ++n) {
      for (int64_t i = 0; i < 5; ++i) {
        const Tensor again = clean[n][i] + deviation[n][i] * torch::randn({draws}, torch::kDouble);
        const Tensor larger = (noisy[n].unsqueeze(0) > again.unsqueeze(1)).to(at::kLong);
        const Tensor others = larger.sum(1) - larger.select(1, i);
        const double share = (others < chosen).to(at::kDouble).mean().item<double>();
        const double p = estimate[n][i].item<double>();
        // Five standard deviations of a mean of draws; 1e-9 if p rounds to 0 or 1.
        EXPECT_NEAR(share, p, 5 * std::sqrt(p * (1 - p) / draws) + 1e-9) << chosen;
      }
    }
  }
}

TEST(MixtureOfExperts, DrawsFromTheGeneratorAlone) {
  MixtureOfExperts module = mixture(8, 2);
  const Tensor x = torch::randn({40, 5}, torch::kDouble);
  const auto [first, balance] = mix(module, x, noise_of(3));
  torch::rand({100});
  const auto [again, same_balance] = mix(module, x, noise_of(3));
  EXPECT_TRUE(at::equal(first, again));
  EXPECT_TRUE(at::equal(balance, same_balance));
  EXPECT_FALSE(at::equal(first, module.forward(x, noise_of(4))));
  EXPECT_TRUE(at::equal(module.forward(x, {}), module.forward(x, {})));
}

// The generator is on the CPU, and the noise is drawn there in the arithmetic's dtype.
TEST(MixtureOfExperts, DrawsTheSameNoiseForEveryDtypeAndDevice) {
  MixtureOfExperts module = mixture(4, 2);
  module.to(torch::kFloat);
  const Tensor x = torch::randn({40, 5});
  const Tensor wanted = module.forward(x, noise_of(3));
  const at::Device device = reference::software_device(0);
  module.to(device);
  const Tensor there = module.forward(x.to(device), noise_of(3));
  EXPECT_EQ(there.device(), device);
  EXPECT_TRUE(at::allclose(there.to(at::kCPU), wanted, 1e-5, 1e-5));
  module.to(at::kCPU);
  module.to(torch::kBFloat16);
  const Tensor narrow = module.forward(x.to(torch::kBFloat16), noise_of(3)).to(torch::kFloat);
  EXPECT_LE(rows_apart(narrow, wanted), 4);
}

// Autocast computes products in bfloat16; the output has the input's dtype.
TEST(MixtureOfExperts, TakesAutocast) {
  MixtureOfExperts module = mixture(4, 2);
  module.to(torch::kFloat);
  const Tensor x = torch::randn({40, 5});
  const Tensor present = torch::arange(40) < 30;
  const Tensor wanted = module.forward(x, {}, present);
  Tensor found, trained;
  {
    const test::Autocast on;
    found = module.forward(x, {}, present);
    const auto [output, imbalance] = mix(module, x, noise_of(3), present);
    trained = output.sum() + imbalance;
  }
  EXPECT_EQ(found.scalar_type(), torch::kFloat);
  EXPECT_LE(rows_apart(found, wanted), 4);
  trained.backward();
  for (const Tensor& weight : module.parameters())
    EXPECT_TRUE(weight.grad().isfinite().all().item<bool>());
}

// With zero gates and noise the experts share the inputs. Training on the imbalance prevents a
// preference for one expert.
TEST(MixtureOfExperts, LearnsToBalance) {
  MixtureOfExperts module = mixture(6, 2);
  const Tensor x = torch::randn({64, 5}, torch::kDouble) + 1;
  torch::optim::Adam optimiser(module.parameters(), torch::optim::AdamOptions(0.05));
  const Pass noise = noise_of(6);
  const double before = mix(module, x, noise).imbalance.item<double>();
  for (int step = 0; step < 60; ++step) {
    optimiser.zero_grad();
    mix(module, x, noise).imbalance.backward();
    optimiser.step();
  }
  EXPECT_GT(before, 0.3);
  EXPECT_LT(mix(module, x, noise).imbalance.item<double>(), 0.1 * before);
}

TEST(MixtureOfExperts, DoesNotSeePadding) {
  MixtureOfExperts module = mixture(5, 2);
  const Tensor x = torch::randn({2, 4, 5}, torch::kDouble);
  const Tensor present = torch::tensor({{1, 1, 1, 0}, {1, 0, 0, 0}}).to(at::kBool);
  const auto [output, imbalance] = mix(module, x, {}, present);
  const Tensor inputs = at::cat({x[0].slice(0, 0, 3), x[1].slice(0, 0, 1)});
  const auto [expected, expected_imbalance] = mix(module, inputs, {});
  EXPECT_TRUE(at::allclose(output[0].slice(0, 0, 3), expected.slice(0, 0, 3), 1e-13, 1e-13));
  EXPECT_TRUE(at::allclose(output[1][0], expected[3], 1e-13, 1e-13));
  EXPECT_EQ(output[1].slice(0, 1).abs().sum().item<double>(), 0);
  EXPECT_NEAR(imbalance.item<double>(), expected_imbalance.item<double>(), 1e-13);
}

TEST(MixtureOfExperts, HasGradients) {
  MixtureOfExperts module = mixture(4, 2);
  const Tensor x = torch::randn({6, 5}, torch::kDouble);
  const Tensor direction = torch::randn({6, 5}, torch::kDouble);
  // Every evaluation has the same noise. The steps do not change which experts are chosen.
  const auto loss = [&](const Tensor& input) {
    const auto [output, imbalance] = mix(module, input, noise_of(7));
    return (output * direction).sum() + imbalance;
  };
  reference::expect_gradients([&](const reference::Tensors& inputs) { return loss(inputs[0]); },
                              {x}, {"x"});
  reference::expect_parameter_gradients(module, [&] { return loss(x); });
}

TEST(MixtureOfExperts, RefusesMisuse) {
  MixtureOfExperts module = mixture(3, 2);
  const Tensor x = torch::randn({2, 5}, torch::kDouble);
  expect_errors({
      {[] { MixtureOfExperts({.depth = 2, .hidden = 2, .experts = 2, .chosen = 3}); },
       "3 of 2 experts are chosen; choose 1 to 2"},
      {[] { MixtureOfExperts({.depth = 2, .hidden = 0}); }, "depth is 2, hidden 0"},
      {[&] { module.forward(x.slice(1, 1), {}); }, "x has shape [2, 4]; its last axis must be 5"},
      {[&] { module.forward(x, {}, torch::ones({3}, torch::kBool)); },
       "present has shape [3], x [2, 5]"},
  });
}

}  // namespace mixture_of_experts_test
}  // namespace attend
