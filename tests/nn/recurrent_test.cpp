#include "attend/nn/recurrent.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

class EveryCell : public testing::TestWithParam<Cell> {};

INSTANTIATE_TEST_SUITE_P(Cells, EveryCell, testing::Values(Cell::gru, Cell::lstm),
                         [](const auto& info) { return info.param == Cell::gru ? "gru" : "lstm"; });

TEST_P(EveryCell, EncoderSeesNoPadding) {
  torch::manual_seed(3);
  BidirectionalEncoder encoder(GetParam(), 5, 8, 2, 0.0);
  encoder.to(torch::kDouble);
  const Tensor x = torch::randn({3, 7, 5}, torch::kDouble);
  const std::vector<int64_t> lengths = {4, 7, 1};
  const Tensor together = encoder.forward(x, torch::tensor(lengths), {});
  for (int64_t b = 0; b < 3; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    const Tensor alone =
        encoder.forward(x.slice(0, b, b + 1).slice(1, 0, length), torch::tensor({length}), {});
    EXPECT_TRUE(torch::allclose(together[b].slice(0, 0, length), alone[0], 1e-12, 1e-12));
    EXPECT_EQ(together[b].slice(0, length).abs().sum().item<double>(), 0);
  }
}

TEST_P(EveryCell, EncoderUnrolledIsTheEncoder) {
  torch::manual_seed(6);
  BidirectionalEncoder encoder(GetParam(), 5, 8, 2, 0.0);
  encoder.to(torch::kDouble);
  const Tensor x = torch::randn({2, 6, 5}, torch::kDouble);
  std::vector<Tensor> states;
  const Tensor unrolled = encoder.unrolled(x, states);
  EXPECT_TRUE(
      torch::allclose(unrolled, encoder.forward(x, torch::tensor({6, 6}), {}), 1e-12, 1e-12));
  ASSERT_EQ(states.size(), 6);
  // What is read off the last state depends on the first through the recurrence alone.
  const auto gradients = torch::autograd::grad({states[5].sum()}, {states[0], states[5]});
  EXPECT_GT(gradients[0].norm().item<double>(), 0);
  EXPECT_TRUE(torch::equal(gradients[1], torch::ones_like(gradients[1])));
}

TEST_P(EveryCell, CellStepsAsTheLayerDoes) {
  torch::manual_seed(4);
  RecurrentCell cell(GetParam(), 3, 4);
  std::vector<Tensor> state(static_cast<size_t>(cell.state_size()), torch::zeros({2, 4}));
  const auto next = cell.forward(torch::randn({2, 3}), state);
  ASSERT_EQ(next.size(), state.size());
  EXPECT_EQ(next[0].sizes(), state[0].sizes());
  EXPECT_LE(next[0].abs().max().item<float>(), 1);
}

TEST(Recurrent, RefusesAnOddDepthAndAnUnknownCell) {
  EXPECT_THROW(BidirectionalEncoder(Cell::gru, 3, 5, 1, 0.0), Error);
  EXPECT_THROW(parse_cell("rnn"), Error);
}

TEST(Dropout, KeepsTheExpectationAndIsTheIdentityWithoutNoise) {
  const Tensor x = torch::ones({100, 100});
  EXPECT_TRUE(torch::equal(dropout(x, 0.5, {}), x));
  const Noise noise = at::make_generator<at::CPUGeneratorImpl>(5);
  const Tensor dropped = dropout(x, 0.25, noise);
  // The mean of 10,000 masks of variance p / (1 - p) = 1/3, to five standard deviations.
  EXPECT_NEAR(dropped.mean().item<double>(), 1.0, 5 * std::sqrt(1.0 / 3 / 1e4));
  EXPECT_NEAR((dropped == 0).to(torch::kDouble).mean().item<double>(), 0.25,
              5 * std::sqrt(0.25 * 0.75 / 1e4));
}

TEST(Dropout, DrawsTheSameMaskFromTheSameSeed) {
  const Tensor x = torch::randn({50});
  const auto drawn = [&](uint64_t seed) {
    return dropout(x, 0.5, at::make_generator<at::CPUGeneratorImpl>(seed));
  };
  EXPECT_TRUE(torch::equal(drawn(7), drawn(7)));
  EXPECT_FALSE(torch::equal(drawn(7), drawn(8)));
}

TEST(Dropout, PassesTheGradientThroughTheMask) {
  const Tensor x = torch::randn({40}).requires_grad_();
  const Tensor y = dropout(x, 0.5, at::make_generator<at::CPUGeneratorImpl>(9));
  y.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad() * x.detach(), y.detach()));
}

}  // namespace
}  // namespace attend
