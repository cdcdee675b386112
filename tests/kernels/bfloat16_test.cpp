// Tests of attention on bf16 arrays with bf16 products, by the rule for float products.
#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace bfloat16_test {

// Several blocks of keys and panels of queries, depths that do not fill tiles, shared key heads.
const Shape kShapes[] = {{1, 2, 1, 59, 111, 40, 24},
                         {1, 2, 1, 161, 300, 33, 65},
                         {2, 1, 1, 5, 260, 111, 1},
                         {1, 1, 1, 130, 257, 1, 3},
                         {1, 4, 2, 64, 128, 64, 64}};

Case<BFloat16> bf16_case(const Shape& shape, double deviation = 1, uint64_t seed = 1) {
  return random_case<BFloat16>(shape, Family::dot, deviation, seed);
}

TEST(BFloat16, FollowsTheRuleInEveryScope) {
  for (const Shape& shape : kShapes) {
    for (const ScopeChoice& scope : kScopes) {
      SCOPED_TRACE(::testing::Message() << scope.name << ", " << shape.queries << " queries");
      auto c = bf16_case(shape);
      ScopeArrays arrays;
      c.scope = scope.make(c.shape, arrays);
      expect_all(c, {2, Layout::padded});
      if (HasFailure()) return;
    }
  }
}

TEST(BFloat16, FollowsTheRuleWithEveryBiasAndNormaliser) {
  for (const BiasChoice& bias : kBiases) {
    for (const NormaliserChoice& normaliser : kNormalisers) {
      SCOPED_TRACE(std::string(bias.name) + ", " + normaliser.name);
      auto c = bf16_case(kShapes[0]);
      set_normaliser(normaliser, c);
      add_bias(c, bias);
      c.scope = causal(60);
      expect_all(c);
      if (HasFailure()) return;
    }
  }
}

TEST(BFloat16, FollowsTheRuleWithDropoutAndSoftCap) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.queries);
    auto c = bf16_case(shape);
    c.dropout = {0.3, 99};
    c.score.soft_cap = 1.25;
    expect_all(c);
  }
}

// Large scores select a single key; small ones do not distinguish keys.
TEST(BFloat16, FollowsTheRuleForLargeAndSmallNumbers) {
  for (const double magnitude : {1e-15, 1e-4, 8.0, 1e4, 1e9}) {
    SCOPED_TRACE(magnitude);
    expect_all(bf16_case(kShapes[0], magnitude));
  }
}

// If the scale is negative, the smallest product has the largest score.
TEST(BFloat16, FollowsTheRuleForScalesOfBothSigns) {
  for (const double scale : {-0.5, 0.0, 1e-20, 3.0}) {
    SCOPED_TRACE(scale);
    auto c = bf16_case(kShapes[0]);
    c.score.scale = scale;
    expect_all(c);
    c.scope = causal(60);
    expect_all(c);
  }
}

// With values of one sign the errors of rounded weights add up. If values cancel, the errors remain
// and the result is nearly 0.
TEST(BFloat16, FollowsTheRuleForValuesOfOneSignAndThoseThatCancel) {
  const Shape shape{1, 1, 1, 64, 512, 64, 64};
  auto c = bf16_case(shape);
  for (size_t n = 1; n < c.value.size(); n += 2) c.value[n].bits = c.value[n - 1].bits ^ 0x8000U;
  expect_all(c);
  for (BFloat16& x : c.value) x.bits &= 0x7fffU;
  expect_all(c);
}

// Gradients that cancel except for the difference of the values, which is half a unit in the last
// place of the stored context.
TEST(BFloat16, GradientsKnowTheUnroundedContext) {
  auto c = bf16_case({1, 1, 1, 7, 2, 1, 1});
  c.score.scale = 1;
  const auto set = [](std::vector<BFloat16>& numbers, std::initializer_list<float> all) {
    size_t n = 0;
    for (BFloat16& x : numbers) x = narrow<BFloat16>(*(all.begin() + n++ % all.size()));
  };
  set(c.query, {0});
  set(c.key, {256, 258});
  set(c.value, {1, 1.0078125});
  set(c.grad_context, {1});
  c.grad_lse.clear();
  c.sinks = {-100};  // has almost no weight
  on_every_bfloat16_level([&] {
    const GradientOutput<BFloat16> gradients = run_backward(c, run_forward(c));
    // sum_j w_j (v_j - c) k_j = 1/4 (258 - 256) 2^-7
    for (const BFloat16 x : gradients.query) EXPECT_EQ(widen(x), 0x1p-8F);
  });
  c.sinks = {257};
  set(c.query, {1});
  const auto want = reference<double>(c);
  on_every_bfloat16_level([&] {
    const auto got = run_backward(c, run_forward(c));
    // A rounded context would have an error of 2^-9 in each of 7 rows of weight 0.2 to 0.7.
    EXPECT_NEAR(got.sinks[0], want.sinks[0], 1e-3);
  });
}

// The bits of the numbers; all NaNs have the same bits.
std::vector<uint16_t> bits(const std::vector<BFloat16>& numbers) {
  std::vector<uint16_t> all;
  for (const BFloat16 x : numbers) all.push_back(std::isnan(widen(x)) ? 0x7fc0 : x.bits);
  return all;
}

// Float products are used instead: 0 times infinity would turn terms that are 0 into NaN.
TEST(BFloat16, WhatIsNotFiniteIsAsWithProductsOfFloats) {
  for (const float x : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const int array : {0, 1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << x << " in array " << array);
      auto c = bf16_case({1, 1, 1, 20, 70, 16, 16});
      auto& numbers = array == 0   ? c.query
                      : array == 1 ? c.key
                      : array == 2 ? c.value
                                   : c.grad_context;
      numbers[5 * 16 + 3] = narrow<BFloat16>(x);
      allow_bfloat16_kernels(false);
      const auto forward = run_forward(c);
      const auto want = run_backward(c, forward);
      allow_bfloat16_kernels(true);
      const auto got = run_backward(c, forward);
      if (array < 3) {
        EXPECT_EQ(bits(run_forward(c).context), bits(forward.context));
      }
      EXPECT_EQ(bits(got.query), bits(want.query));
      EXPECT_EQ(bits(got.key), bits(want.key));
      EXPECT_EQ(bits(got.value), bits(want.value));
    }
  }
}

// Results are bit-identical.
TEST(BFloat16, ThreadsChangeNothing) {
  const auto c = bf16_case({1, 2, 1, 200, 1500, 40, 24});
  on_every_bfloat16_level([&] {
    const auto a = run_forward(c, {1}), b = run_forward(c, {3});
    EXPECT_EQ(bits(a.context), bits(b.context));
    EXPECT_EQ(a.lse, b.lse);
    const auto g = run_backward(c, a, {1}), h = run_backward(c, a, {3});
    EXPECT_EQ(bits(g.query), bits(h.query));
    EXPECT_EQ(bits(g.key), bits(h.key));
    EXPECT_EQ(bits(g.value), bits(h.value));
  });
}

}  // namespace bfloat16_test
}  // namespace attend::kernels::testing
