#include "attend/nn/positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attend/ops/attention.h"
#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace positions_test {

using at::Tensor;

double at_place(const Tensor& x, int64_t row, int64_t column) {
  return x[row][column].item<double>();
}

TEST(SinusoidalPositions, AreTheFormula) {
  for (const int64_t depth : {1, 2, 3, 8, 59}) {
    const Tensor table = sinusoidal_positions(111, depth, 3, at::kDouble);
    ASSERT_EQ(table.sizes(), (std::vector<int64_t>{111, depth}));
    for (int64_t row = 0; row < 111; ++row) {
      for (int64_t column = 0; column < depth; ++column) {
        const double pair = static_cast<double>(column / 2);
        const double angle =
            static_cast<double>(row + 3) / std::pow(10000.0, 2 * pair / static_cast<double>(depth));
        const double expected = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
        // An angle of up to 114 has a relative error of a few units in the last place.
        EXPECT_NEAR(at_place(table, row, column), expected, 114 * 1e-15);
      }
    }
  }
  EXPECT_EQ(sinusoidal_positions(0, 4).sizes(), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(sinusoidal_positions(2, 4).scalar_type(), at::kFloat);
}

// A position's vector is a linear map of the vector `distance` positions before (Vaswani 2017,
// 3.5). Scalar products of two positions depend only on their distance.
TEST(SinusoidalPositions, HaveProductsOfDistances) {
  const Tensor table = sinusoidal_positions(40, 16, 0, at::kDouble);
  const Tensor products = at::matmul(table, table.t());
  for (int64_t distance = 0; distance < 40; ++distance) {
    const Tensor diagonal = products.diagonal(distance);
    EXPECT_LT((diagonal - diagonal[0]).abs().max().item<double>(), 1e-12);
  }
}

// The columns of the formula, with all sines first.
TEST(SinusoidalPositions, HaveTheirSinesFirst) {
  for (const int64_t depth : {1, 3, 8}) {
    const Tensor table = sinusoidal_positions(5, depth, 3, at::kDouble);
    const Tensor halves = sinusoidal_positions(5, depth, 3, at::kDouble, SinusoidOrder::halves);
    const int64_t sines = (depth + 1) / 2;
    ASSERT_EQ(halves.sizes(), table.sizes());
    for (int64_t column = 0; column < depth; ++column)
      EXPECT_TRUE(at::equal(table.select(1, column),
                            halves.select(1, column / 2 + (column % 2 == 0 ? 0 : sines))));
  }
}

// Angle of row p and frequency i: (p + 2) 10000^(-i / (half - 1)), rounded to float32 as in
// fairseq.
TEST(SinusoidalPositions, BeginAtTwoAsInFairseq) {
  constexpr int64_t half = 5, first = 1020;
  const Tensor table =
      sinusoidal_positions(3, 2 * half, first, at::kDouble, SinusoidOrder::fairseq);
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t i = 0; i < half; ++i) {
      const auto place = static_cast<double>(first + row + 2);
      const double angle = place * std::pow(10000.0, -static_cast<double>(i) / (half - 1));
      // The frequency and the angle are each rounded twice, by 2^-24 of their size.
      const double tolerance = 4 * angle * std::exp2(-24) + 1e-12;
      EXPECT_NEAR(table[row][i].item<double>(), std::sin(angle), tolerance);
      EXPECT_NEAR(table[row][half + i].item<double>(), std::cos(angle), tolerance);
    }
  EXPECT_EQ(
      test::error_of([] { sinusoidal_positions(1, 7, 0, at::kFloat, SinusoidOrder::fairseq); }),
      "[sinusoidal_positions] depth is 7; fairseq's sinusoids need an even depth from 4");
}

TEST(SinusoidalGrid, EncodesRowsThenColumns) {
  const Tensor grid = sinusoidal_grid({3, 5}, 14, at::kDouble);
  const Tensor line = sinusoidal_positions(5, 7, 0, at::kDouble);
  ASSERT_EQ(grid.sizes(), (std::vector<int64_t>{15, 14}));
  for (int64_t y = 0; y < 3; ++y) {
    for (int64_t x = 0; x < 5; ++x) {
      EXPECT_TRUE(at::equal(grid[y * 5 + x].slice(0, 0, 7), line[y]));
      EXPECT_TRUE(at::equal(grid[y * 5 + x].slice(0, 7), line[x]));
    }
  }
}

TEST(LearnedPositions, AreAddedAndTrained) {
  torch::manual_seed(1);
  LearnedPositions positions(9, 4);
  const Tensor table = positions.named_parameters()["table"];
  const Tensor x = torch::randn({2, 3, 4});
  const Tensor y = positions.forward(x, 5);
  for (int64_t t = 0; t < 3; ++t)
    EXPECT_TRUE(at::equal(y.select(1, t), x.select(1, t) + table[5 + t]));
  y.sum().backward();
  const Tensor gradient = table.grad().sum(1);  // 2 sequences, 4 columns
  EXPECT_TRUE(at::equal(gradient, torch::tensor({0, 0, 0, 0, 0, 8, 8, 8, 0}).to(at::kFloat)));
}

TEST(Rotate, TurnsPairsOfColumns) {
  const Tensor x = torch::randn({2, 3, 7, 6}, at::kDouble);
  const Tensor turned = rotate(x, 11, 500);
  for (int64_t t = 0; t < 7; ++t) {
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(11 + t) * std::pow(500.0, -2.0 * i / 6);
      const Tensor a = x.select(2, t).select(-1, 2 * i), b = x.select(2, t).select(-1, 2 * i + 1);
      const Tensor first = a * std::cos(angle) - b * std::sin(angle);
      const Tensor second = a * std::sin(angle) + b * std::cos(angle);
      EXPECT_TRUE(at::allclose(turned.select(2, t).select(-1, 2 * i), first, 0, 1e-13));
      EXPECT_TRUE(at::allclose(turned.select(2, t).select(-1, 2 * i + 1), second, 0, 1e-13));
    }
  }
}

// With equal vectors at all positions, scores are equal along diagonals for every offset.
TEST(Rotate, MakesScoresDependOnDistancesAlone) {
  const Tensor query = torch::randn({8}, at::kDouble).expand({59, 8});
  const Tensor key = torch::randn({8}, at::kDouble).expand({59, 8});
  const Tensor scores = attention_scores(rotate(query), rotate(key));
  EXPECT_GT((scores[0] - scores[0][0]).abs().max().item<double>(), 1e-2);
  for (int64_t distance = -58; distance < 59; ++distance) {
    const Tensor diagonal = scores.diagonal(distance);
    EXPECT_LT((diagonal - diagonal[0]).abs().max().item<double>(), 1e-12);
  }
  const Tensor later = attention_scores(rotate(query, 1000), rotate(key, 1000));
  EXPECT_TRUE(at::allclose(later, scores, 0, 1e-11));
}

TEST(Rotate, HasGradients) {
  const Tensor x = torch::randn({1, 2, 3, 4}, at::kDouble);
  const Tensor weight = torch::randn_like(x);
  const reference::Function f = [&](const reference::Tensors& inputs) {
    return (rotate(inputs[0], 2).square() * weight).sum();
  };
  reference::expect_gradients(f, {x}, {"x"});
  reference::expect_second_gradients(f, {x}, {"x"});
}

TEST(Positions, RefuseMisuse) {
  LearnedPositions positions(9, 4);
  const Tensor x = torch::randn({2, 3, 4});
  expect_errors({
      {[] { sinusoidal_positions(3, 0); }, "3 positions of depth 0 from 0 on; the depth must be"},
      {[] { sinusoidal_positions(-1, 4); }, "the others 0 or more"},
      {[] {
         sinusoidal_grid({2, 2}, 5);
       },
       "depth is 5; it must be even"},
      {[] { LearnedPositions(0, 4); }, "maximum is 0, depth 4"},
      {[&] { positions.forward(x, 7); },
       "positions 7 to 9 are asked for, 9 are learned; shorten the sequence"},
      {[&] { positions.forward(x, -1); }, "positions -1 to 1"},
      {[&] { positions.forward(x.slice(2, 1)); }, "x has shape [2, 3, 3]; it must end in"},
      {[&] { rotate(x.slice(2, 1)); }, "with an even depth"},
      {[&] { rotate(x, 0, 1); }, "base is 1; it must be above 1"},
  });
}

}  // namespace positions_test
}  // namespace attend
