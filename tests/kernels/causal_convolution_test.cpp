#include "attend/kernels/causal_convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "attend/base/error.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace causal_convolution_test {

std::vector<float> random_numbers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = normal(random);
  return numbers;
}

struct Convolution {
  int64_t batch, tokens, channels, width;
  bool silu;
  std::vector<float> input = random_numbers(batch * tokens * channels, 1),
                     weight = random_numbers(channels * width, 2),
                     bias = random_numbers(channels, 3),
                     state = random_numbers(batch * (width - 1) * channels, 4),
                     grad_output = random_numbers(batch * tokens * channels, 5),
                     grad_last = random_numbers(batch * (width - 1) * channels, 6);

  CausalConvolution<float> problem() const {
    return {batch,    tokens,        channels,    width,        input.data(), tokens * channels,
            channels, weight.data(), bias.data(), state.data(), silu};
  }

  // Index of input t in `input`, or in `state` if t is negative.
  size_t place(int64_t b, int64_t t, int64_t c) const {
    return static_cast<size_t>(t >= 0 ? (b * tokens + t) * channels + c
                                      : (b * (width - 1) + width - 1 + t) * channels + c);
  }
  double sum(int64_t b, int64_t t, int64_t c) const {
    double sum = bias[static_cast<size_t>(c)];
    for (int64_t w = 0; w < width; ++w) {
      const int64_t from = t - width + 1 + w;
      sum += double{weight[static_cast<size_t>(c * width + w)]} *
             (from >= 0 ? input : state)[place(b, from, c)];
    }
    return sum;
  }
  double output(double sum) const { return silu ? sum / (1 + std::exp(-sum)) : sum; }
  double slope(double sum) const {
    const double s = 1 / (1 + std::exp(-sum));
    return silu ? s * (1 + sum * (1 - s)) : 1;
  }
};

void expect_output(const Convolution& c) {
  std::vector<float> output(c.input.size(), NAN), last(c.state.size(), NAN);
  causal_convolution<float>(c.problem(), output.data(), last.data());
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      for (int64_t t = 0; t < c.tokens; ++t)
        ASSERT_NEAR(output[c.place(b, t, ch)], c.output(c.sum(b, t, ch)), 1e-5);
      for (int64_t w = 0; w < c.width - 1; ++w) {
        const int64_t t = c.tokens - c.width + 1 + w;
        ASSERT_EQ(last[static_cast<size_t>((b * (c.width - 1) + w) * c.channels + ch)],
                  (t >= 0 ? c.input : c.state)[c.place(b, t, ch)]);
      }
    }
}

void expect_gradients(const Convolution& c) {
  std::vector<float> input(c.input.size(), NAN), weight(c.weight.size(), NAN),
      bias(c.bias.size(), NAN), state(c.state.size(), NAN);
  causal_convolution_backward<float>(c.problem(), c.grad_output.data(), c.grad_last.data(),
                                     {input.data(), weight.data(), bias.data(), state.data()});
  std::vector<double> to_input(input.size()), to_weight(weight.size()), to_bias(bias.size()),
      to_state(c.state.size());
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      for (int64_t t = 0; t < c.tokens; ++t) {
        const double slope = c.grad_output[c.place(b, t, ch)] * c.slope(c.sum(b, t, ch));
        to_bias[static_cast<size_t>(ch)] += slope;
        for (int64_t w = 0; w < c.width; ++w) {
          const int64_t from = t - c.width + 1 + w;
          const auto index = static_cast<size_t>(ch * c.width + w);
          to_weight[index] += slope * (from >= 0 ? c.input : c.state)[c.place(b, from, ch)];
          (from >= 0 ? to_input : to_state)[c.place(b, from, ch)] += slope * c.weight[index];
        }
      }
      for (int64_t w = 0; w < c.width - 1; ++w) {
        const int64_t t = c.tokens - c.width + 1 + w;
        (t >= 0 ? to_input : to_state)[c.place(b, t, ch)] +=
            c.grad_last[static_cast<size_t>((b * (c.width - 1) + w) * c.channels + ch)];
      }
    }
  const auto expect = [](const std::vector<float>& got, const std::vector<double>& wanted) {
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-5 * (10 + std::abs(wanted[i])));
  };
  expect(input, to_input);
  expect(weight, to_weight);
  expect(bias, to_bias);
  expect(state, to_state);
}

TEST(CausalConvolution, EqualsLoops) {
  on_every_target([] {
    for (const bool silu : {false, true})
      for (const auto& [tokens, channels, width] :
           {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {3, 5, 4}, {59, 111, 4}, {2, 16, 7}}) {
        SCOPED_TRACE(channels);
        const Convolution c{2, tokens, channels, width, silu};
        expect_output(c);
        expect_gradients(c);
      }
  });
}

TEST(CausalConvolution, RefusesNegativeSizes) {
  const Convolution c{1, 2, 3, 4, false};
  auto problem = c.problem();
  problem.width = 0;
  EXPECT_THROW(causal_convolution<float>(problem, nullptr, nullptr), Error);
  problem = c.problem();
  problem.tokens = -1;
  EXPECT_THROW(causal_convolution<float>(problem, nullptr, nullptr), Error);
}

}  // namespace causal_convolution_test
}  // namespace attend::kernels::testing
