#include "attend/kernels/adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace adam_test {

constexpr Adam kStep{.scale = 0.5F,
                     .first_share = 0.1F,
                     .second_share = 0.02F,
                     .decay = 1e-3F,
                     .rate = 0.01F,
                     .root = 0.7F,
                     .epsilon = 1e-8F,
                     .average_share = 0.25F};

struct Numbers {
  std::vector<float> gradient, decayed, first, second, weights, average;

  AdamVectors vectors() {
    return {gradient.data(), decayed.data(), first.data(),
            second.data(),   weights.data(), average.data()};
  }
};

// Magnitudes from 1e-12 to 1e12: their squares fit into floats.
Numbers some(int64_t count) {
  std::mt19937 engine(5);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-12, 12);
  Numbers n;
  for (int64_t i = 0; i < count; ++i) {
    const float size = std::pow(10.0F, exponent(engine));
    n.gradient.push_back(size * normal(engine));
    n.decayed.push_back(static_cast<float>(i % 3 == 0));
    n.first.push_back(size * normal(engine));
    n.second.push_back(size * size * std::abs(normal(engine)));
    n.weights.push_back(normal(engine));
    n.average.push_back(normal(engine));
  }
  return n;
}

// The formulas of the header in double precision, with an error of a few roundings of the terms.
void expect_step(const Numbers& before, const Numbers& after, size_t i) {
  const double unit = 8 * std::ldexp(1.0, -24);
  const double g = double{kStep.scale} * before.gradient[i];
  const double first = before.first[i] + double{kStep.first_share} * (g - before.first[i]);
  const double second = before.second[i] + double{kStep.second_share} * (g * g - before.second[i]);
  // The moments are sums of two terms, which may cancel.
  EXPECT_NEAR(after.first[i], first, unit * (std::abs(g) + std::abs(before.first[i])));
  EXPECT_NEAR(after.second[i], second, unit * (g * g + before.second[i]));
  const double move = double{kStep.rate} * after.first[i] /
                      (std::sqrt(double{after.second[i]}) / kStep.root + kStep.epsilon);
  const double weight = before.weights[i] * (1 - double{kStep.decay} * before.decayed[i]) - move;
  const double terms = std::abs(before.weights[i]) + std::abs(move);
  EXPECT_NEAR(after.weights[i], weight, unit * terms);
  EXPECT_NEAR(after.average[i],
              before.average[i] + double{kStep.average_share} * (weight - before.average[i]),
              unit * (terms + std::abs(before.average[i])));
}

TEST(AdamStep, IsTheFormulaOnEveryTarget) {
  for (const int64_t count : {0, 1, 3, 59, 111}) {
    const Numbers before = some(count);
    on_every_target([&] {
      Numbers after = before;
      adam_step(kStep, after.vectors(), count);
      for (size_t i = 0; i < before.weights.size(); ++i) {
        SCOPED_TRACE(i);
        expect_step(before, after, i);
      }
    });
  }
}

// Slices of any length are bit-identical: training does not depend on the number of threads.
TEST(AdamStep, OfANumberDoesNotDependOnThoseBesideIt) {
  const Numbers before = some(111);
  on_every_target([&] {
    Numbers whole = before, parts = before;
    adam_step(kStep, whole.vectors(), 111);
    const AdamVectors all = parts.vectors();
    for (int64_t i = 0; i < 111; i += 7)
      adam_step(kStep,
                {all.gradient + i, all.decayed + i, all.first + i, all.second + i, all.weights + i,
                 all.average + i},
                std::min<int64_t>(7, 111 - i));
    EXPECT_EQ(whole.weights, parts.weights);
    EXPECT_EQ(whole.average, parts.average);
  });
}

}  // namespace adam_test
}  // namespace attend::kernels::testing
