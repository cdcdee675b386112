#include "attend/kernels/token_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace token_rows_test {

constexpr float never = -std::numeric_limits<float>::infinity();

struct Found {
  std::vector<float> log_probabilities, all;
  std::vector<int64_t> tokens;
};

struct Output {
  int64_t rows, tokens, depth;
  float size = 1;  // size of the logits
  std::vector<float> a = {}, weight = {}, bias = {};
  PackedMatrix matrix = {};

  void draw() {
    std::mt19937_64 random(static_cast<uint64_t>(rows * 1009 + tokens));
    std::normal_distribution<float> normal;
    for (auto [to, count] :
         {std::pair{&a, rows * depth}, {&weight, tokens * depth}, {&bias, tokens}})
      for (int64_t i = 0; i < count; ++i) to->push_back(normal(random) * (to == &a ? size : 1));
    matrix = {weight.data(), bias.data(), tokens, depth};
  }

  // Expected log softmax of a row, in double.
  std::vector<double> wanted(int64_t row) const {
    std::vector<double> logits(bias.begin(), bias.end());
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t k = 0; k < depth; ++k)
        logits[static_cast<size_t>(t)] += double{a[static_cast<size_t>(row * depth + k)]} *
                                          weight[static_cast<size_t>(t * depth + k)];
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double each : logits) sum += std::exp(each - largest);
    for (double& each : logits) each -= largest + std::log(sum);
    return logits;
  }

  Found find(TokenRows problem, int64_t first, int64_t count) const {
    Found found;
    found.log_probabilities.resize(static_cast<size_t>(count * problem.best));
    found.tokens.resize(found.log_probabilities.size());
    found.all.resize(static_cast<size_t>(count * tokens));
    problem.rows = count;
    problem.matrix = &matrix;
    problem.a = a.data() + first * depth;
    problem.a_stride = depth;
    problem.log_probabilities = found.log_probabilities.data();
    problem.tokens = found.tokens.data();
    problem.all = found.all.data();
    token_rows(problem);
    return found;
  }
};

std::vector<Output> outputs() {
  std::vector<Output> all;
  for (const int64_t rows : {1, 7, 66})
    for (const int64_t tokens : {3, 32, 75, 1000})
      for (const float size : {0.0F, 1.0F, 30.0F}) all.push_back({rows, tokens, 12, size});
  for (Output& each : all) each.draw();
  return all;
}

TEST(TokenRows, AreTheMostProbableInOrder) {
  on_every_target([] {
    for (const Output& output : outputs()) {
      const int64_t best = std::min<int64_t>(5, output.tokens);
      const Found found = output.find({.best = best}, 0, output.rows);
      // Logits of `size` times the depth have errors in their last place.
      const double bound = 2e-6 * (1 + output.size * 12);
      for (int64_t r = 0; r < output.rows; ++r) {
        const std::vector<double> wanted = output.wanted(r);
        std::vector<double> sorted = wanted;
        std::sort(sorted.rbegin(), sorted.rend());
        for (int64_t n = 0; n < best; ++n) {
          const auto index = static_cast<size_t>(r * best + n);
          const auto token = static_cast<size_t>(found.tokens[index]);
          ASSERT_NEAR(found.log_probabilities[index], sorted[static_cast<size_t>(n)], bound);
          ASSERT_NEAR(found.log_probabilities[index], wanted[token], bound);
          ASSERT_EQ(found.log_probabilities[index],
                    found.all[static_cast<size_t>(r * output.tokens) + token]);
        }
        for (int64_t t = 0; t < output.tokens; ++t)
          ASSERT_NEAR(found.all[static_cast<size_t>(r * output.tokens + t)],
                      wanted[static_cast<size_t>(t)], bound);
      }
    }
  });
}

// tests/kernels/packed_matrix_test.cpp tests these products.
class TokenRowsOfRoundedWeights : public ::testing::TestWithParam<WeightType> {};

TEST_P(TokenRowsOfRoundedWeights, AreReadOffTheirProducts) {
  on_every_target([] {
    for (Output& output : outputs()) {
      output.matrix = {output.weight.data(), output.bias.data(), output.tokens, output.depth,
                       GetParam()};
      const Found found = output.find({.best = 1}, 0, output.rows);
      const int64_t stride = output.matrix.padded_columns();
      std::vector<float> logits(static_cast<size_t>(output.rows * stride));
      packed_products({.rows = output.rows,
                       .matrix = &output.matrix,
                       .a = output.a.data(),
                       .a_stride = output.depth,
                       .out = logits.data(),
                       .out_stride = stride});
      for (int64_t r = 0; r < output.rows; ++r) {
        const float* row = logits.data() + r * stride;
        const float largest = *std::max_element(row, row + output.tokens);
        double sum = 0;
        for (int64_t t = 0; t < output.tokens; ++t) sum += std::exp(double{row[t]} - largest);
        for (int64_t t = 0; t < output.tokens; ++t)
          ASSERT_NEAR(found.all[static_cast<size_t>(r * output.tokens + t)],
                      double{row[t]} - largest - std::log(sum), 2e-6 * (1 + output.size * 12));
        ASSERT_EQ(row[found.tokens[static_cast<size_t>(r)]], largest);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, TokenRowsOfRoundedWeights,
                         ::testing::Values(WeightType::bfloat16, WeightType::int8));

TEST(TokenRows, OfARowAreTheSameInAnyCompany) {
  on_every_target([] {
    for (const Output& output : outputs()) {
      const Found all = output.find({.best = 3}, 0, output.rows);
      for (int64_t r = 0; r < output.rows; ++r) {
        const Found alone = output.find({.best = 3}, r, 1);
        for (int64_t n = 0; n < 3; ++n) {
          const auto index = static_cast<size_t>(r * 3 + n);
          ASSERT_EQ(alone.tokens[static_cast<size_t>(n)], all.tokens[index]);
          ASSERT_EQ(alone.log_probabilities[static_cast<size_t>(n)], all.log_probabilities[index]);
        }
      }
    }
  });
}

// Tokens with equal logits are in ascending order.
TEST(TokenRows, EqualOnesComeInTheOrderOfTheirTokens) {
  on_every_target([] {
    Output output{1, 100, 2};
    output.draw();
    output.weight.assign(output.weight.size(), 0.0F);
    output.bias.assign(output.bias.size(), 0.0F);
    output.bias[70] = 1;
    output.matrix = {output.weight.data(), output.bias.data(), 100, 2};
    EXPECT_EQ(output.find({.best = 4}, 0, 1).tokens, (std::vector<int64_t>{70, 0, 1, 2}));
    const std::vector<int64_t> excluded = {70, 1, 2};
    EXPECT_EQ(
        output.find({.best = 4, .excluded = excluded.data(), .excluded_count = 1}, 0, 1).tokens,
        (std::vector<int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(
        output.find({.best = 4, .excluded = excluded.data(), .excluded_count = 3}, 0, 1).tokens,
        (std::vector<int64_t>{0, 3, 4, 5}));
  });
}

TEST(TokenRows, ExcludedAndGivenTokensCountInTheSum) {
  on_every_target([] {
    for (const Output& output : outputs()) {
      if (output.rows != 7) continue;
      const Found plain = output.find({.best = 2}, 0, 7);
      const int64_t excluded = plain.tokens[0];
      const std::vector<int64_t> given = {-1, output.tokens - 1, -1, 0, 1, -1, 1};
      const Found found = output.find(
          {.best = 2, .excluded = &excluded, .excluded_count = 1, .given = given.data()}, 0, 7);
      for (int64_t r = 0; r < 7; ++r) {
        const auto index = static_cast<size_t>(2 * r);
        const auto token = given[static_cast<size_t>(r)];
        if (token < 0) {
          ASSERT_NE(found.tokens[index], excluded);
          if (plain.tokens[index] != excluded && plain.tokens[index + 1] != excluded) {
            ASSERT_EQ(found.tokens[index + 1], plain.tokens[index + 1]);
          }
        } else {
          ASSERT_EQ(found.tokens[index], token);
          ASSERT_EQ(found.log_probabilities[index],
                    plain.all[static_cast<size_t>(r * output.tokens + token)]);
          ASSERT_EQ(found.log_probabilities[index + 1], never);
        }
      }
    }
  });
}

TEST(TokenRows, NotANumberSpreads) {
  on_every_target([] {
    Output output{1, 50, 2};
    output.draw();
    output.a[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(output.find({.best = 2}, 0, 1).log_probabilities[0]));
  });
}

}  // namespace token_rows_test
}  // namespace attend::kernels::testing
