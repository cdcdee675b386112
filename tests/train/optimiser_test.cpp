#include "attend/train/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attend {
namespace optimiser_test {

using at::Tensor;

// Adam (Kingma & Ba 2015, algorithm 1) with decoupled weight decay (Loshchilov & Hutter 2019,
// algorithm 2), in double precision.
struct Expected {
  double weight, first = 0, second = 0;

  void step(double gradient, double t, double rate, double decay, double l2) {
    gradient += l2 * weight;
    first = 0.8 * first + 0.2 * gradient;
    second = 0.95 * second + 0.05 * gradient * gradient;
    const double corrected_first = first / (1 - std::pow(0.8, t));
    const double corrected_second = second / (1 - std::pow(0.95, t));
    weight -= rate * (corrected_first / (std::sqrt(corrected_second) + 1e-3) + decay * weight);
  }
};

// The matrix decays, its bias does not. The borders of the three slices are within tensors.
void expect_adam(double l2) {
  TrainConfig config;
  config.l2 = l2;
  config.replicas = 3;
  config.beta1 = 0.8;
  config.beta2 = 0.95;
  config.epsilon = 1e-3;
  config.weight_decay = 0.3;
  config.clip_norm = 1e9;
  config.weight_average = 0;
  torch::manual_seed(3);
  std::vector<ModulePtr> replicas;
  for (int i = 0; i < 3; ++i) replicas.push_back(std::make_shared<torch::nn::LinearImpl>(3, 2));
  const ModulePtr averaged = std::make_shared<torch::nn::LinearImpl>(3, 2);
  const auto world = single_process();
  Optimiser optimiser(config, replicas, averaged, *world);
  WorkerThreads threads(3);
  std::vector<Expected> expected;
  for (const Tensor& parameter : replicas[0]->parameters())
    for (int64_t i = 0; i < parameter.numel(); ++i)
      expected.push_back({parameter.view({-1})[i].item<double>()});
  for (int t = 1; t <= 4; ++t) {
    const double rate = 0.1 / t;
    for (size_t r = 0; r < 3; ++r) {
      optimiser.clear_gradient(static_cast<int64_t>(r));
      for (Tensor& parameter : replicas[r]->parameters())
        parameter.mutable_grad().fill_(0.1 * t * static_cast<double>(r + 1));
    }
    const double gradient = 0.6 * t;
    const double norm = optimiser.sum_gradients(threads);
    double squares = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      squares += std::pow(gradient + (i < 6 ? l2 * expected[i].weight : 0), 2);
    EXPECT_NEAR(norm, std::sqrt(squares), 1e-5);
    optimiser.step(threads, norm, rate);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i].step(gradient, t, rate, i < 6 ? 0.3 : 0, i < 6 ? l2 : 0);
  }
  size_t i = 0;
  // Each operation of the four steps rounds to 24 bits.
  for (const Tensor& parameter : averaged->parameters())
    for (int64_t j = 0; j < parameter.numel(); ++j)
      EXPECT_NEAR(parameter.view({-1})[j].item<double>(), expected[i++].weight, 1e-6) << i;
}

TEST(Optimiser, IsAdamWithDecayOfTheMatricesAlone) { expect_adam(0); }

// The penalty is part of the gradient and its norm, only for matrices.
TEST(Optimiser, AddsThePenaltyToTheGradient) { expect_adam(0.7); }

// Fixed random parameters, such as random features, have no gradient.
TEST(Optimiser, LeavesWhatHasNoGradient) {
  TrainConfig config;
  config.weight_decay = 0.3;
  torch::manual_seed(4);
  const auto replica = std::make_shared<torch::nn::LinearImpl>(3, 2);
  replica->weight.requires_grad_(false);
  const Tensor drawn = replica->weight.clone(), bias = replica->bias.detach().clone();
  const auto averaged = std::make_shared<torch::nn::LinearImpl>(3, 2);
  const auto world = single_process();
  Optimiser optimiser(config, {replica}, averaged, *world);
  WorkerThreads threads(1);
  for (int step = 0; step < 3; ++step) {
    optimiser.clear_gradient(0);
    replica->bias.mutable_grad().fill_(1);
    optimiser.step(threads, optimiser.sum_gradients(threads), 0.1);
  }
  EXPECT_TRUE(at::equal(replica->weight, drawn));
  EXPECT_TRUE(at::equal(averaged->weight, drawn));
  EXPECT_FALSE(at::equal(replica->bias, bias));
}

}  // namespace optimiser_test
}  // namespace attend
