#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace attention_test {

const int64_t kSizes[] = {1, 2, 3, 17, 59, 111, 129};

template <class T>
class Attention : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Attention, Types);

TYPED_TEST(Attention, EverySize) {
  for (const int64_t queries : kSizes) {
    for (const int64_t keys : kSizes) {
      SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
      const Shape shape{2, 2, 1, queries, keys, 1 + (queries * keys) % 67, 1 + (keys * 5) % 37};
      expect_all(random_case<TypeParam>(shape, Family::dot, 1, queries + keys));
    }
  }
}

TYPED_TEST(Attention, NothingAtAll) {
  const Shape shapes[] = {{0, 2, 1, 5, 5, 4, 4}, {2, 2, 2, 0, 5, 4, 4}, {2, 4, 2, 5, 0, 4, 4},
                          {2, 0, 0, 5, 5, 4, 4}, {2, 2, 1, 5, 5, 4, 0}, {2, 2, 1, 5, 5, 0, 4}};
  for (const Family family : {Family::dot, Family::additive}) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE("shape " + std::to_string(&shape - shapes));
      auto c = random_case<TypeParam>(shape, family);
      if (family == Family::additive && c.vector.empty()) c.vector = {TypeParam(1)};
      if (family == Family::additive && shape.heads * shape.depth == 0) continue;
      expect_all(c);
    }
  }
}

TYPED_TEST(Attention, FewQueriesOfManyKeys) {
  for (const Family family : {Family::dot, Family::additive}) {
    auto c = random_case<TypeParam>({1, 2, 1, 1, 5000, 20, 8}, family);
    expect_all(c);
    c.sinks = {TypeParam(9), TypeParam(1)};
    c.scope = Scope{{{Window{.left = 0, .right = 700}}}};  // the later splits are empty
    expect_all(c);
  }
}

template <class S>
class OneQuery : public ::testing::Test {};
using Storages = ::testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(OneQuery, Storages);

// Heads of queries that share keys are computed together.
TYPED_TEST(OneQuery, OfHeadsThatShareKeys) {
  for (const int64_t heads : {2, 6, 8, 14, 16}) {
    for (const ScopeChoice& scope : kScopes) {
      for (const bool later : {false, true}) {
        SCOPED_TRACE(std::to_string(heads) + " heads, " + scope.name + (later ? ", late" : ""));
        auto c = random_case<TypeParam>({3, heads, 2, 1, 37, 20, 9}, Family::dot, 1, 5);
        ScopeArrays arrays;
        c.scope = scope.make(c.shape, arrays);
        if (later) c.scope = intersect(c.scope, causal(29));
        expect_all(c);
      }
    }
  }
}

TYPED_TEST(OneQuery, OfHeadsThatShareKeysAndHaveTheirOwn) {
  for (const BiasChoice& bias : kBiases) {
    for (const NormaliserChoice& normaliser : kNormalisers) {
      SCOPED_TRACE(std::string(bias.name) + ", " + normaliser.name);
      auto c = random_case<TypeParam>({2, 8, 2, 1, 37, 20, 9}, Family::dot, 1, 6);
      set_normaliser(normaliser, c);
      add_bias(c, bias);
      expect_all(c);
    }
  }
  auto c = random_case<TypeParam>({2, 8, 2, 1, 3000, 20, 9}, Family::dot, 1, 7);
  expect_all(c);  // in splits
  c.score.soft_cap = 2;
  c.dropout = {.probability = 0.3, .seed = 4};
  expect_all(c);
}

TYPED_TEST(Attention, ManyChunksOfKeys) {
  for (const Family family : {Family::dot, Family::additive}) {
    auto c = random_case<TypeParam>({1, 2, 1, 70, 1100, 24, 40}, family);
    expect_all(c);
    c.scope = causal(900);
    expect_all(c);
    c.scope = Scope{{{Window{.left = 100, .right = 100}}}};  // most chunks see no query
    expect_all(c);
  }
}

// Positions are consecutive in groups of `width`. The table has all distances of the grid, or
// clamps some.
TYPED_TEST(Attention, PositionsOnGrids) {
  for (const int64_t width : {4, 6, 32}) {
    for (const bool clamped : {false, true}) {
      SCOPED_TRACE(std::to_string(width) + " wide" + (clamped ? ", clamped" : ""));
      auto c = random_case<TypeParam>({2, 2, 1, 75, 140, 12, 9}, Family::dot);
      const auto position = [&](int64_t i) { return i / width * (2 * width - 1) + i % width; };
      for (int64_t i = 0; i < c.shape.queries; ++i) c.query_positions.push_back(position(i));
      for (int64_t j = 0; j < c.shape.keys; ++j) c.key_positions.push_back(position(j));
      c.relative_offset = clamped ? 20 : position(c.shape.keys);
      c.relative_count = 2 * c.relative_offset + 1;
      c.relative_axes = {false, true, false};
      c.relative =
          random_numbers<TypeParam>(c.relative_axes.count(c.shape, c.relative_count), 1, 23);
      expect_all(c);
    }
  }
}

TYPED_TEST(Attention, WeightsOfRows) {
  for (const Family family : {Family::dot, Family::additive}) {
    auto c = random_case<TypeParam>({2, 2, 1, 90, 111, 20, 8}, family);
    c.scope = causal(-3);
    c.slopes = {TypeParam(0.5), TypeParam(0.25)};
    const Expected<TypeParam> expected(c);
    on_every_target([&] {
      const Output<TypeParam> forward = run_forward(c);
      // all rows, in three calls
      std::vector<TypeParam> all(4 * 90 * 111, TypeParam(7));
      for (const auto& [first, rows] : {std::pair{0, 2}, {2, 80}, {82, 8}}) {
        attention_weights<TypeParam>(PlacedCase<TypeParam>{c, {}}.problem(), forward.lse.data(),
                                     {{}, first, rows},
                                     {all.data() + first * 111, 2 * 90 * 111, 90 * 111, 111});
      }
      expected.check_weights(all);
    });
  }
}

TYPED_TEST(Attention, RowsWithoutKeys) {
  on_every_target([] {
    auto c = random_case<TypeParam>({1, 1, 1, 70, 90, 20, 8}, Family::dot);
    c.scope = causal(-20);
    const auto got = run_forward(c);
    const auto gradients = run_backward(c, got);
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(got.lse[i], -std::numeric_limits<TypeParam>::infinity());
      for (int64_t e = 0; e < 8; ++e) EXPECT_EQ(got.context[i * 8 + e], 0);
      for (int64_t a = 0; a < 20; ++a) EXPECT_EQ(gradients.query[i * 20 + a], 0);
    }
  });
}

}  // namespace attention_test
}  // namespace attend::kernels::testing
