#include "attend/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace cross_entropy_test {

template <class S>
struct Rows {
  int64_t rows, tokens;
  bool with_bias;
  double smoothing;
  int64_t first = 0;
  std::vector<S> logits = {};
  std::vector<Compute<S>> bias = {};
  std::vector<int64_t> target = {};

  void draw() {
    std::mt19937_64 random(rows * 1000 + tokens);
    std::normal_distribution<double> normal(0, 4);
    for (int64_t i = 0; i < rows * tokens; ++i) logits.push_back(stored<S>(normal(random)));
    for (int64_t i = 0; i < tokens; ++i) bias.push_back(Compute<S>(with_bias ? normal(random) : 0));
    for (int64_t i = 0; i < rows; ++i)
      target.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(tokens)));
  }

  double logit(int64_t row, int64_t j) const {
    return double(number(logits[static_cast<size_t>(row * tokens + j)])) +
           static_cast<double>(bias[static_cast<size_t>(j)]);
  }
};

struct Expected {
  double loss = 0;
  std::vector<double> slopes, bias_slopes;
};

// By the formulas of the header.
template <class S>
Expected by_definition(const Rows<S>& r) {
  Expected expected;
  expected.bias_slopes.assign(static_cast<size_t>(r.tokens), 1.0);  // the initial value
  for (int64_t row = 0; row < r.rows; ++row) {
    double sum = 0;
    for (int64_t j = 0; j < r.tokens; ++j) sum += std::exp(r.logit(row, j));
    for (int64_t j = 0; j < r.tokens; ++j) {
      const double p = std::exp(r.logit(row, j)) / sum;
      const double wanted =
          (j == r.target[static_cast<size_t>(row)] ? 1 - r.smoothing : 0) +
          (j < r.first ? 0 : r.smoothing / static_cast<double>(r.tokens - r.first));
      expected.loss -= wanted * std::log(p);
      expected.slopes.push_back(p - wanted);
      expected.bias_slopes[static_cast<size_t>(j)] += p - wanted;
    }
  }
  return expected;
}

template <class S>
class CrossEntropyOf : public ::testing::Test {};
using Types = ::testing::Types<float, double, BFloat16>;
TYPED_TEST_SUITE(CrossEntropyOf, Types);

// Exponents of up to 16 times log2(e) have a rounding error of 24 units in a probability of at most
// 1. Sums of `tokens` terms add one unit per term at worst, sums over rows in a bias one per row.
// BFloat16 results are rounded to 2^-8 relative.
TYPED_TEST(CrossEntropyOf, RowsIsTheDefinition) {
  using S = TypeParam;
  const double unit = std::numeric_limits<Compute<S>>::epsilon();
  const double storing = std::is_same_v<S, BFloat16> ? 1.0 / 256 : unit;
  for (const int64_t tokens : {1, 2, 3, 59, 111, 1000}) {
    for (const int64_t first : {-1, 0, 2}) {
      if (first >= tokens) continue;
      const bool with_bias = first >= 0;
      Rows<S> r{3, tokens, with_bias, with_bias ? 0.1 : 0.0, std::max<int64_t>(first, 0)};
      r.draw();
      const Expected expected = by_definition(r);
      const double close = unit * (24 + static_cast<double>(tokens));
      on_every_target([&] {
        std::vector<S> logits = r.logits;
        std::vector<Compute<S>> bias_slopes(static_cast<size_t>(tokens), 1);
        CrossEntropy<S> problem{r.rows, tokens, logits.data()};
        if (with_bias) problem.bias = r.bias.data();
        problem.target = r.target.data();
        problem.smoothing = r.smoothing;
        problem.first = r.first;
        EXPECT_NEAR(cross_entropy(problem), expected.loss, 32 * 3 * close);
        problem.with_slopes = true;
        problem.bias_slopes = bias_slopes.data();
        EXPECT_NEAR(cross_entropy(problem), expected.loss, 32 * 3 * close);
        for (size_t i = 0; i < logits.size(); ++i)
          EXPECT_NEAR(number(logits[i]), expected.slopes[i],
                      close + storing * std::abs(expected.slopes[i]));
        for (size_t j = 0; j < bias_slopes.size(); ++j)
          EXPECT_NEAR(static_cast<double>(bias_slopes[j]), expected.bias_slopes[j], 3 * close);
      });
    }
  }
}

// Logits with exponentials beyond the type, and one that exceeds all others; float32's 2^0 has an
// error of one unit.
TYPED_TEST(CrossEntropyOf, LargeLogitsIsFinite) {
  using S = TypeParam;
  on_every_target([] {
    std::vector<S> logits(59, stored<S>(-1e4));
    logits[3] = stored<S>(1e4);
    const std::vector<int64_t> target = {3};
    CrossEntropy<S> problem{1, 59, logits.data()};
    problem.target = target.data();
    problem.with_slopes = true;
    EXPECT_NEAR(cross_entropy(problem), 0, 2e-7);
    for (const S slope : logits) EXPECT_NEAR(number(slope), 0, 2e-7);
  });
}

}  // namespace cross_entropy_test
}  // namespace attend::kernels::testing
