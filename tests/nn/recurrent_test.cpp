#include "attend/nn/recurrent.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/functional.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "attend/base/error.h"
#include "attend/nn/recurrent_gates.h"

namespace attend {
namespace recurrent_test {

using at::Tensor;

class EveryCell : public testing::TestWithParam<Cell> {};

INSTANTIATE_TEST_SUITE_P(Cells, EveryCell, testing::Values(Cell::gru, Cell::lstm),
                         [](const auto& info) { return info.param == Cell::gru ? "gru" : "lstm"; });

TEST_P(EveryCell, EncoderSeesNoPadding) {
  torch::manual_seed(3);
  BidirectionalEncoder encoder(GetParam(), 5, 8, {.count = 2});
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

TEST_P(EveryCell, EncoderReadsForwardAlone) {
  torch::manual_seed(5);
  BidirectionalEncoder both(GetParam(), 5, 8, {}), one(GetParam(), 5, 4, {.backward = false});
  {
    const torch::NoGradGuard no_gradient;
    for (const auto& item : one.named_parameters())
      item.value().copy_(both.named_parameters()[item.key()]);
  }
  const Tensor x = torch::randn({2, 6, 5}), lengths = torch::tensor({6, 4});
  const Tensor forward = one.forward(x, lengths, {});
  EXPECT_TRUE(forward.allclose(both.forward(x, lengths, {}).slice(2, 0, 4), 1e-6, 1e-6));
  std::vector<Tensor> states;
  EXPECT_TRUE(one.unrolled(x.slice(0, 0, 1), states).allclose(forward.slice(0, 0, 1), 1e-6, 1e-6));
  EXPECT_EQ(states.size(), 6U);
  EXPECT_NO_THROW(BidirectionalEncoder(GetParam(), 3, 5, {.backward = false}));
}

TEST_P(EveryCell, EncoderUnrolledIsTheEncoder) {
  torch::manual_seed(6);
  BidirectionalEncoder encoder(GetParam(), 5, 8, {.count = 2});
  encoder.to(torch::kDouble);
  const Tensor x = torch::randn({2, 6, 5}, torch::kDouble);
  std::vector<Tensor> states;
  const Tensor unrolled = encoder.unrolled(x, states);
  EXPECT_TRUE(
      torch::allclose(unrolled, encoder.forward(x, torch::tensor({6, 6}), {}), 1e-12, 1e-12));
  ASSERT_EQ(states.size(), 6);
  // The last state depends on the first only through the recurrence.
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

// LibTorch's layer over each sequence separately, with this layer's weights.
template <class Layer>
Tensor by_libtorch(Layer layer, const BidirectionalEncoder& encoder, const Tensor& x,
                   const std::vector<int64_t>& lengths) {
  for (auto& item : layer->named_parameters())
    item.value().set_data(encoder.named_parameters()["layer0." + item.key()].detach().clone());
  std::vector<Tensor> rows;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto row = static_cast<int64_t>(b);
    const Tensor alone = x.slice(0, row, row + 1).slice(1, 0, lengths[b]);
    rows.push_back(
        at::constant_pad_nd(std::get<0>(layer->forward(alone)), {0, 0, 0, x.size(1) - lengths[b]}));
  }
  const Tensor all = at::cat(rows);
  all.square().sum().backward();
  std::vector<Tensor> found = {all.detach()};
  for (const Tensor& parameter : layer->parameters()) found.push_back(parameter.grad());
  return at::cat(c10::fmap(found, [](const Tensor& each) { return each.flatten(); }));
}

// By the fused gates (float32, 16 units per direction) and by the composed ones.
TEST_P(EveryCell, EncoderAndItsGradientsAreLibTorchs) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const int64_t hidden : {32, 10}) {
      torch::manual_seed(11);
      BidirectionalEncoder encoder(GetParam(), 5, hidden, {});
      encoder.to(type);
      const Tensor x = torch::randn({4, 7, 5}, type);
      const std::vector<int64_t> lengths = {4, 7, 1, 7};
      const Tensor annotations = encoder.forward(x, torch::tensor(lengths), {});
      annotations.square().sum().backward();
      std::vector<Tensor> found = {annotations.detach().flatten()};
      for (const Tensor& parameter : encoder.parameters())
        found.push_back(parameter.grad().flatten());
      const int64_t half = hidden / 2;
      const Tensor wanted =
          GetParam() == Cell::gru
              ? by_libtorch(
                    torch::nn::GRU(
                        torch::nn::GRUOptions(5, half).bidirectional(true).batch_first(true)),
                    encoder, x, lengths)
              : by_libtorch(
                    torch::nn::LSTM(
                        torch::nn::LSTMOptions(5, half).bidirectional(true).batch_first(true)),
                    encoder, x, lengths);
      const double tolerance = type == at::kFloat ? 1e-5 : 1e-12;
      EXPECT_TRUE(torch::allclose(at::cat(found), wanted, tolerance, tolerance))
          << type << ' ' << hidden;
    }
}

TEST_P(EveryCell, GatesHaveSecondDerivatives) {
  const int64_t gates = GetParam() == Cell::gru ? 3 : 4;
  const auto second = [&](at::ScalarType type) {
    torch::manual_seed(12);
    const auto leaf = [&](int64_t depth) {
      return torch::randn({3, depth}).to(type).requires_grad_();
    };
    const Tensor y = leaf(gates * 16), u = leaf(gates * 16), h = leaf(16);
    Tensor next;
    if (GetParam() == Cell::gru) {
      next = gru_gates(y, u, h);
    } else {
      const auto [hidden, cell] = lstm_gates(y + u, h);
      next = hidden + 0.5 * cell;
    }
    const auto first = torch::autograd::grad({next.square().sum()}, {y, u, h}, {},
                                             /*retain_graph=*/true, /*create_graph=*/true);
    const Tensor sum = first[0].square().sum() + first[1].sin().sum() + first[2].square().sum();
    const auto found = torch::autograd::grad({sum}, {y, u, h});
    return at::cat({found[0], found[1], found[2]}, 1);
  };
  // The composed gates in double, which LibTorch differentiates.
  EXPECT_TRUE(torch::allclose(second(at::kFloat).to(at::kDouble), second(at::kDouble), 1e-5, 1e-5));
}

// Inputs of gates may depend on each other (u of h in every cell) or be one tensor twice.
TEST_P(EveryCell, GatesHaveTheSameGradientsWithAGraph) {
  const bool is_gru = GetParam() == Cell::gru;
  torch::manual_seed(13);
  const Tensor state = torch::randn({3, 16}).requires_grad_();
  const Tensor matrix = torch::randn({16, is_gru ? 48 : 64}).requires_grad_();
  const auto found = [&](bool create_graph) {
    Tensor next = state;
    for (int step = 0; step < 3; ++step) {
      const Tensor y = at::matmul(next, matrix) / 8;
      if (is_gru) {
        next = gru_gates(y, y, next);
      } else {
        const auto [hidden, cell] = lstm_gates(y, next);
        next = hidden + cell;
      }
    }
    const auto gradients = torch::autograd::grad({next.square().sum()}, {state, matrix}, {},
                                                 /*retain_graph=*/true, create_graph);
    return at::cat({gradients[0].flatten(), gradients[1].flatten()});
  };
  EXPECT_TRUE(torch::allclose(found(true), found(false), 1e-4, 1e-5));
}

TEST_P(EveryCell, GatesReadNumbersAsTheyAre) {
  const bool is_gru = GetParam() == Cell::gru;
  torch::manual_seed(14);
  const Tensor y = torch::randn({3, is_gru ? 48 : 64}), h = torch::randn({3, 16});
  const Tensor slope = torch::randn({3, 16});
  const auto found = [&](const std::function<Tensor(const Tensor&)>& stored) {
    const Tensor a = stored(y).detach().requires_grad_(), b = stored(h).detach().requires_grad_();
    const Tensor next = is_gru ? gru_gates(a, stored(y), b) : lstm_gates(a, b).first;
    const auto gradients = torch::autograd::grad({next}, {a, b}, {stored(slope)});
    return at::cat({next, gradients[0], gradients[1]}, 1);
  };
  const Tensor wanted = found([](const Tensor& x) { return x; });
  EXPECT_TRUE(torch::equal(found([](const Tensor& x) { return at::_neg_view(x.neg()); }), wanted));
}

// Products in bfloat16 (autocast) with a float32 state, which LibTorch widens.
TEST_P(EveryCell, GatesTakeOtherDtypesBesideTheState) {
  const bool is_gru = GetParam() == Cell::gru;
  const Tensor y = torch::randn({3, is_gru ? 48 : 64}).to(at::kBFloat16), h = torch::randn({3, 16});
  const auto next = [&](const Tensor& x) {
    return is_gru ? gru_gates(x, x, h) : lstm_gates(x, h).first;
  };
  EXPECT_TRUE(torch::allclose(next(y).to(at::kFloat), next(y.to(at::kFloat)), 3e-2, 3e-2));
}

// Layer i reads the output of layer i - 1. Residual layers after the first also add that output.
TEST_P(EveryCell, LayersReadTheOneBelow) {
  for (const bool residual : {false, true}) {
    torch::manual_seed(8);
    RecurrentCell cell(GetParam(), 3, 4, {.count = 3, .residual = residual});
    cell.to(torch::kDouble);
    ASSERT_EQ(cell.state_size(), GetParam() == Cell::gru ? 3 : 6);
    std::vector<Tensor> state;
    for (int64_t i = 0; i < cell.state_size(); ++i)
      state.push_back(torch::randn({2, 4}, torch::kDouble));
    const Tensor input = torch::randn({2, 3}, torch::kDouble);
    const auto next = cell.forward(input, state);
    const auto named = cell.named_parameters();
    Tensor read = input;
    for (size_t i = 0; i < 3; ++i) {
      const std::string name = (GetParam() == Cell::gru ? "gru" : "lstm") +
                               (i == 0 ? std::string() : std::to_string(i)) + ".";
      const auto weight = [&](const char* part) { return named[name + part]; };
      Tensor hidden;
      if (GetParam() == Cell::gru) {
        hidden = at::gru_cell(read, state[i], weight("weight_ih"), weight("weight_hh"),
                              weight("bias_ih"), weight("bias_hh"));
        EXPECT_TRUE(torch::allclose(next[i], hidden, 1e-14, 1e-14));
      } else {
        Tensor memory;
        std::tie(hidden, memory) =
            at::lstm_cell(read, {state[2 * i], state[2 * i + 1]}, weight("weight_ih"),
                          weight("weight_hh"), weight("bias_ih"), weight("bias_hh"));
        EXPECT_TRUE(torch::allclose(next[2 * i], hidden, 1e-14, 1e-14));
        EXPECT_TRUE(torch::allclose(next[2 * i + 1], memory, 1e-14, 1e-14));
      }
      read = residual && i > 0 ? read + hidden : hidden;
    }
    EXPECT_TRUE(torch::allclose(cell.output(next), read, 1e-14, 1e-14));
  }
}

TEST_P(EveryCell, ResidualEncoderLayersAddWhatTheyRead) {
  torch::manual_seed(9);
  BidirectionalEncoder deep(GetParam(), 5, 8, {.count = 2, .residual = true});
  torch::manual_seed(9);
  BidirectionalEncoder plain(GetParam(), 5, 8, {.count = 2});
  torch::manual_seed(9);
  BidirectionalEncoder below(GetParam(), 5, 8, {});
  const Tensor x = torch::randn({2, 6, 5}), lengths = torch::tensor({6, 4});
  const Tensor expected = plain.forward(x, lengths, {}) + below.forward(x, lengths, {});
  EXPECT_TRUE(torch::allclose(deep.forward(x, lengths, {}), expected, 1e-6, 1e-6));
  const Tensor whole = x.slice(0, 0, 1);
  std::vector<Tensor> states;
  EXPECT_TRUE(torch::allclose(deep.unrolled(whole, states),
                              deep.forward(whole, torch::tensor({6}), {}), 1e-6, 1e-6));
}

TEST(Recurrent, RefusesAnOddDepth) {
  EXPECT_THROW(BidirectionalEncoder(Cell::gru, 3, 5, {}), Error);
}

TEST(Dropout, KeepsTheExpectationAndIsTheIdentityWithoutNoise) {
  const Tensor x = torch::ones({100, 100});
  EXPECT_TRUE(torch::equal(dropout(x, 0.5, {}), x));
  const Pass pass{.generator = at::make_generator<at::CPUGeneratorImpl>(5)};
  const Tensor dropped = dropout(x, 0.25, pass);
  // The mean of 10,000 masks of variance p / (1 - p) = 1/3, within five standard deviations.
  EXPECT_NEAR(dropped.mean().item<double>(), 1.0, 5 * std::sqrt(1.0 / 3 / 1e4));
  EXPECT_NEAR((dropped == 0).to(torch::kDouble).mean().item<double>(), 0.25,
              5 * std::sqrt(0.25 * 0.75 / 1e4));
}

TEST(Dropout, DrawsTheSameMaskFromTheSameSeed) {
  const Tensor x = torch::randn({50});
  const auto drawn = [&](uint64_t seed) {
    return dropout(x, 0.5, {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)});
  };
  EXPECT_TRUE(torch::equal(drawn(7), drawn(7)));
  EXPECT_FALSE(torch::equal(drawn(7), drawn(8)));
}

TEST(Dropout, PassesTheGradientThroughTheMask) {
  const Tensor x = torch::randn({40}).requires_grad_();
  const Tensor y = dropout(x, 0.5, {.generator = at::make_generator<at::CPUGeneratorImpl>(9)});
  y.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad() * x.detach(), y.detach()));
}

}  // namespace recurrent_test
}  // namespace attend
