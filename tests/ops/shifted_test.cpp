// Tests of scopes and biases of later queries against rows of the whole, and of scopes around
// centres.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/bias_cases.h"
#include "tests/ops/misuse.h"

namespace attend::reference {
namespace shifted_test {

using at::Tensor;

constexpr Sizes sizes = {.batch = 2, .heads = 2, .key_heads = 1, .queries = 6, .keys = 6};

Tensor mask_of(const Scope& scope, int64_t queries) {
  const Tensor mask = scope_mask(scope, sizes.batch, sizes.heads, queries, sizes.keys, at::kCPU);
  const Tensor dense = mask.defined() ? mask : at::ones({}, at::kBool);
  return dense.expand({sizes.batch, sizes.heads, queries, sizes.keys});
}

Tensor centres() {
  return at::tensor(std::vector<double>{0, 1.5, -3, 4.25, 9, 2}, at::kDouble).view({6});
}

TEST(Shifted, ScopesAreTheRowsOfTheWhole) {
  auto cases = scope_cases(sizes);
  cases.push_back({"around", around(centres(), 1), {}});
  for (const ScopeCase& scope : cases) {
    SCOPED_TRACE(scope.name);
    const Tensor whole = mask_of(scope.scope, sizes.queries);
    for (int64_t offset = 0; offset < sizes.queries; ++offset) {
      EXPECT_TRUE(
          at::equal(mask_of(shifted(scope.scope, offset, 1), 1), whole.narrow(2, offset, 1)))
          << offset;
      const int64_t rest = sizes.queries - offset;
      EXPECT_TRUE(
          at::equal(mask_of(shifted(scope.scope, offset), rest), whole.narrow(2, offset, rest)))
          << offset;
    }
  }
}

TEST(Shifted, BiasesAreTheRowsOfTheWhole) {
  const Tensor query = at::randn({2, 2, 6, 4}, at::kDouble),
               key = at::randn({2, 1, 6, 4}, at::kDouble);
  for (const BiasCase& c : bias_cases(sizes, 4, 12)) {
    SCOPED_TRACE(c.name);
    const Bias bias = c.make(c.tensors);
    const Tensor whole = attention_scores(query, key, {.bias = bias});
    for (int64_t offset = 0; offset < sizes.queries; ++offset) {
      for (const int64_t count : {int64_t{1}, sizes.queries - offset}) {
        const Tensor rows = query.narrow(2, offset, count);
        EXPECT_TRUE(
            at::allclose(attention_scores(rows, key, {.bias = shifted(bias, offset, count)}),
                         whole.narrow(2, offset, count), 1e-12, 1e-12))
            << offset << " " << count;
      }
    }
  }
}

TEST(Shifted, ScopesOfSomeKeysAreTheColumnsOfTheWhole) {
  auto cases = scope_cases(sizes);
  cases.push_back({"around", around(centres(), 1), {}});
  for (const ScopeCase& scope : cases) {
    SCOPED_TRACE(scope.name);
    const Tensor whole = mask_of(scope.scope, sizes.queries);
    for (int64_t row = 0; row < sizes.queries; row += 3) {
      const Scope rows = shifted(scope.scope, row, 2);
      for (int64_t first = 0; first < sizes.keys; ++first) {
        for (const int64_t count : {int64_t{0}, int64_t{1}, sizes.keys - first}) {
          const Tensor mask = scope_mask(shifted_keys(rows, first, count), sizes.batch, sizes.heads,
                                         2, count, at::kCPU);
          const Tensor dense = mask.defined() ? mask : at::ones({}, at::kBool);
          EXPECT_TRUE(at::equal(dense.expand({sizes.batch, sizes.heads, 2, count}),
                                whole.narrow(2, row, 2).narrow(3, first, count)))
              << row << " " << first << " " << count;
        }
      }
    }
  }
}

TEST(Shifted, BiasesOfSomeKeysAreTheColumnsOfTheWhole) {
  const Tensor query = at::randn({2, 2, 6, 4}, at::kDouble),
               key = at::randn({2, 1, 6, 4}, at::kDouble);
  for (const BiasCase& c : bias_cases(sizes, 4, 12)) {
    SCOPED_TRACE(c.name);
    const Bias bias = c.make(c.tensors);
    const Tensor whole = attention_scores(query, key, {.bias = bias});
    for (int64_t first = 0; first < sizes.keys; ++first) {
      for (const int64_t count : {int64_t{1}, sizes.keys - first}) {
        const Bias part = shifted_keys(shifted(bias, 3, 2), first, count);
        const Tensor scores =
            attention_scores(query.narrow(2, 3, 2), key.narrow(2, first, count), {.bias = part});
        EXPECT_TRUE(
            at::allclose(scores, whole.narrow(2, 3, 2).narrow(3, first, count), 1e-12, 1e-12))
            << first << " " << count;
      }
    }
  }
}

// Identity values show which weights were dropped.
TEST(Shifted, DropoutOfAPartIsThatOfTheWhole) {
  const Tensor query = at::randn({2, 2, 6, 4}, at::kDouble);
  const Tensor key = at::zeros({2, 2, 90, 4}, at::kDouble);
  const Tensor value = at::eye(90, at::kDouble).expand({2, 2, 90, 90});
  for (const Path path : {Path::fused, Path::composed}) {
    const Dropout dropout = {.probability = 0.4, .seed = 11};
    const Tensor whole = attention(query, key, value, {.dropout = dropout, .path = path}).context;
    const AttentionSpec spec = {
        .dropout = {.probability = 0.4, .seed = 11, .first_query = 2, .first_key = 37},
        .path = path};
    const Tensor part =
        attention(query.narrow(2, 2, 3), key.narrow(2, 37, 50), value.narrow(2, 37, 50), spec)
            .context;
    EXPECT_TRUE(
        at::equal(part.narrow(3, 37, 50) != 0, whole.narrow(2, 2, 3).narrow(3, 37, 50) != 0));
  }
}

// An image generated position by position: fewer keys than the grid has.
TEST(Shifted, GridsMayEndEarly) {
  const Tensor x = at::randn({6, 3}, at::kDouble), table = at::randn({3, 5}, at::kDouble);
  const Tensor whole = attention_scores(x, x, {.bias = grid(table)});
  for (int64_t t = 0; t < 6; ++t) {
    const Tensor step = attention_scores(x.narrow(0, t, 1), x.narrow(0, 0, t + 1),
                                         {.bias = shifted(grid(table), t, 1)});
    EXPECT_TRUE(at::allclose(step, whole.narrow(0, t, 1).narrow(1, 0, t + 1), 1e-12, 1e-12));
  }
}

TEST(Shifted, MisuseSaysWhichRowsThereAre) {
  const Scope mask = dense_mask(at::ones({4, 6}, at::kBool));
  const Scope blocks = block_sparse(at::ones({2, 2}, at::kBool), 3);
  const Tensor x = at::ones({2, 6, 3});
  expect_errors({
      {[&] { shifted(mask, 3, 2); },
       "the mask of shape [4, 6] has 4 rows; queries 3 to 4 were asked for"},
      {[&] {
         shifted(dense_bias(at::ones({4, 6})), 4, 1);
       },
       "the dense bias of shape [4, 6]"},
      {[&] { shifted(blocks, 6, 1); },
       "the block layout of shape [2, 2] has 2 rows; blocks of queries 2 to 2 were asked for"},
      {[&] { shifted_keys(blocks, 5, 2); },
       "the block layout of shape [2, 2] has 2 columns; blocks of keys 1 to 2 were asked for"},
      {[&] { shifted_keys(mask, 5, 2); },
       "the mask of shape [4, 6] has 6 columns; keys 5 to 6 were asked for"},
      {[&] {
         shifted_keys(dense_bias(at::ones({4, 6})), -1, 2);
       },
       "the dense bias of shape [4, 6] has 6 columns; keys -1 to 0 were asked for"},
      {[&] {
         attention(x, x, x, {.scope = block_sparse(at::ones({2, 2}, at::kBool), 3, 3)});
       },
       "a layout begins at 3 in its first block; it must be 0 to 2"},
      {[&] {
         attention(x, x, x, {.bias = grid(at::ones({3, 5}), 0, 1)});
       },
       "the 6 queries from 0 on and the 6 keys from 1 on"},
      {[&] { shifted(around(at::ones({3}), 1), 3, 1); }, "the scope's centres of shape [3]"},
  });
}

TEST(Around, SeesTheKeysNearTheCentres) {
  const Tensor query = at::randn({2, 2, 6, 3}, at::kDouble),
               key = at::randn({2, 1, 6, 3}, at::kDouble);
  const Tensor places = at::randn({2, 2, 6}, at::kDouble) * 3 + 2;
  for (const int64_t reach : {0, 1, 2}) {
    const Scope scope = around(places, reach);
    Tensor expected = at::zeros({2, 2, 6, 6}, at::kBool);
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 0; j < 6; ++j)
            expected[b][h][i][j] =
                std::abs(static_cast<double>(j) - places[b][h][i].item<double>()) <=
                static_cast<double>(reach);
    EXPECT_TRUE(at::equal(mask_of(scope, 6), expected));
    for (const Path path : {Path::composed, Path::fused}) {
      const auto got = attention(query, key, key, {.scope = scope & causal(), .path = path});
      const auto wanted =
          attention(query, key, key, {.scope = dense_mask(expected) & causal(), .path = path});
      EXPECT_TRUE(at::equal(got.context, wanted.context));
      EXPECT_TRUE(at::equal(got.lse, wanted.lse));
      const auto three = attention(query.select(1, 1), key.squeeze(1), key.squeeze(1),
                                   {.scope = around(places.select(1, 1), reach) & causal()});
      EXPECT_TRUE(at::allclose(three.context, wanted.context.select(1, 1), 1e-12, 1e-12));
      const auto two = attention(query[1][0], key[1][0], key[1][0],
                                 {.scope = around(places[1][0], reach) & causal()});
      EXPECT_TRUE(at::allclose(two.context, wanted.context[1][0], 1e-12, 1e-12));
    }
  }
}

// A mask of 100,000 queries and keys would take 10 GB.
TEST(Around, HoldsNoMask) {
  const int64_t length = 100'000;
  const Tensor x = at::randn({length, 1}), places = at::arange(length).flip(0);
  const auto result = attention(x, x, x, {.scope = around(places, 1), .path = Path::fused});
  const auto first =
      attention(x.narrow(0, 0, 1), x.narrow(0, length - 2, 2), x.narrow(0, length - 2, 2));
  EXPECT_TRUE(at::allclose(result.context[0], first.context[0]));
}

// Local attention learns predicted centres through the Gaussian (Luong et al. 2015).
TEST(Around, LearnsItsCentresThroughTheGaussian) {
  const Tensors inputs = {at::randn({3, 2}, at::kDouble), at::randn({5, 2}, at::kDouble),
                          at::tensor(std::vector<double>{1.3, 2.2, 3.6}, at::kDouble)};
  const Function function = [](const Tensors& x) {
    const Bias bias = gaussian(x[2], at::ones({3}, at::kDouble));
    return attention(x[0], x[1], x[1], {.scope = around(x[2], 2), .bias = bias})
        .context.pow(3)
        .sum();
  };
  expect_gradients(function, inputs, {"query", "key", "centres"});
}

TEST(Around, MisuseSaysWhatIsWanted) {
  const Tensor x = at::ones({2, 6, 3});
  expect_errors({
      {[] { around({}, 1); },
       "centres of a scope must be numbers of shape [batch, heads, queries]"},
      {[] { around(at::ones({2}, at::kBool), 1); }, "got Bool of shape [2]"},
      {[] { around(at::ones({2}), -1); }, "must reach 0 or more keys, got -1"},
      {[&] {
         attention(x, x, x, {.scope = around(at::ones({2, 5}), 1)});
       },
       "centres of shape [2, 1, 5] do not broadcast to [batch, heads, queries] = [2, 1, 6]"},
  });
}

}  // namespace shifted_test
}  // namespace attend::reference
