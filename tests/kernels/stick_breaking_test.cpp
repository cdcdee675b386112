// Tests of stick-breaking over several tiles, chunks and splits of the keys.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace stick_breaking_test {

template <class S>
class StickBreaking : public ::testing::Test {};
using Storages = ::testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(StickBreaking, Storages);

// Scores near `centre`: with -6 a row leaves something for the first of a thousand keys.
template <class S>
Case<S> case_near(const Shape& shape, double centre, uint64_t seed) {
  auto c = random_case<S>(shape, Family::dot, 1, seed);
  c.normaliser = Normaliser::stick_breaking;
  c.dense_axes = {false, false, false};
  c.dense.assign(shape.keys, Compute<S>(centre));
  return c;
}

TYPED_TEST(StickBreaking, OfManyChunksOfKeys) {
  for (const double centre : {-6, 0}) {
    for (const auto& [name, scope] :
         {std::pair{"all", Scope{}},
          {"causal", causal(900)},
          {"causal from the middle", causal(-30)},
          {"window", Scope{{{Window{.left = 100, .right = 100}}}}},
          {"two clauses", Scope{{{Prefix{70}}, {Window{.left = 9, .right = 0, .offset = 990}}}}}}) {
      SCOPED_TRACE(std::string(name) + ", scores near " + std::to_string(centre));
      auto c = case_near<TypeParam>({1, 2, 1, 70, 1100, 24, 40}, centre, 3);
      c.scope = scope;
      expect_all(c);
      c.slopes = {Compute<TypeParam>(0.01), Compute<TypeParam>(-0.01)};
      c.dropout = {.probability = 0.3, .seed = 4};
      expect_all(c, {.threads = 2});
    }
  }
}

TYPED_TEST(StickBreaking, OfFewQueriesInSplits) {
  for (const double centre : {-8, 0}) {
    auto c = case_near<TypeParam>({1, 2, 1, 1, 5000, 20, 8}, centre, 5);
    expect_all(c);
    c.scope = Scope{{{Window{.left = 0, .right = 700}}}};  // the later splits are empty
    expect_all(c);
    c.scope = Scope{{{Window{.left = 0, .right = 300, .offset = 4200}}}};  // so are the first
    expect_all(c);
    auto shared = case_near<TypeParam>({2, 8, 2, 1, 3000, 20, 9}, centre, 6);
    shared.dense.clear();
    expect_all(shared);
  }
}

// A row without keys has lse -inf, any other row 0.
TYPED_TEST(StickBreaking, HasNoNumberPerRow) {
  for (const int64_t keys : {59, 3000}) {
    auto c = case_near<TypeParam>({1, 1, 1, 3, keys, 4, 2}, -9, 7);
    c.scope = causal(-1);
    on_every_target([&] {
      const auto lse = run_forward(c).lse;
      EXPECT_EQ(lse[0], -std::numeric_limits<Compute<TypeParam>>::infinity());
      EXPECT_EQ(lse[1], 0);
      EXPECT_EQ(lse[2], 0);
    });
  }
}

// NaN spoils the rows that see it, in any tile of one split or of several.
TYPED_TEST(StickBreaking, NanReachesTheRow) {
  for (const int64_t keys : {111, 5000}) {
    for (const int64_t place : {int64_t{0}, int64_t{64}, keys - 1}) {
      auto c = case_near<TypeParam>({1, 1, 1, 3, keys, 4, 2}, 30, 8);
      c.dense_axes = {false, false, true};
      c.dense.assign(3 * keys, 30);
      c.dense[keys + place] = std::numeric_limits<Compute<TypeParam>>::quiet_NaN();
      on_every_target([&] {
        const auto got = run_forward(c);
        for (int64_t i = 0; i < 3; ++i) {
          EXPECT_EQ(std::isnan(got.lse[i]), i == 1) << keys << " keys, NaN at " << place;
          for (int64_t e = 0; e < 2; ++e)
            EXPECT_EQ(std::isnan(number(got.context[i * 2 + e])), i == 1) << place;
        }
      });
    }
  }
}

TYPED_TEST(StickBreaking, WeightsOfManyTiles) {
  using C = Compute<TypeParam>;
  auto c = case_near<TypeParam>({1, 2, 1, 70, 700, 9, 3}, -5, 9);
  c.scope = causal(620);
  const PlacedCase<TypeParam> placed{c, {}};
  const Expected<TypeParam> expected(c);
  on_every_target([&] {
    const auto lse = run_forward(c).lse;
    std::vector<C> weights(2 * 70 * 700), sums(2 * 700), wanted(sums.size());
    const Selection all{{}, 0, 70};
    attention_weights<TypeParam>(placed.problem(), lse.data(), all,
                                 contiguous(weights.data(), 2, 70, 700), 2);
    expected.check_weights(weights);
    attention_column_sums(placed.problem(), lse.data(), all, sums.data(), 2);
    for (size_t n = 0; n < weights.size(); ++n) wanted[n / 49000 * 700 + n % 700] += weights[n];
    for (size_t n = 0; n < sums.size(); ++n)
      EXPECT_NEAR(sums[n], wanted[n], 70 * unit_roundoff<C>() * wanted[n]);
  });
}

}  // namespace stick_breaking_test
}  // namespace attend::kernels::testing
