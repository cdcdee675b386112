// Tests of query positions among the keys, against each batch entry computed separately at its
// place.
#include <gtest/gtest.h>

#include "tests/ops/bias_cases.h"
#include "tests/ops/misuse.h"

namespace attend::reference {
namespace placed_test {

using at::Tensor;

constexpr Path paths[] = {Path::automatic, Path::composed};

// All parts of a spec that depend on positions.
AttentionSpec spec_of(const Tensor& slopes, const Tensor& table, const Tensor& vectors) {
  return {.scope = (causal() & window(5)) | global_tokens(2),
          .bias = alibi(slopes) + buckets({.table = table, .bidirectional = false}) +
                  relative_keys(vectors)};
}

// A decoder with 9 positions; the last 3 are new. Batch entry 1 has 4 keys less, and its last 2 of
// 3 queries are padding.
struct Cached : testing::Test {
  const int64_t keys = 9, queries = 3;
  const Tensor offsets = at::tensor({6, 4}, at::kLong);
  const Tensor key_lengths_of = at::tensor({9, 5}, at::kLong);
  const Tensor query_lengths_of = at::tensor({3, 1}, at::kLong);
  Tensors inputs;

  void SetUp() override {
    const auto random = [](at::IntArrayRef shape) { return at::randn(shape, at::kDouble); };
    inputs = leaves({random({2, 2, queries, 4}), random({2, 1, keys, 4}), random({2, 1, keys, 3}),
                     random({2}).abs(), random({2, 8}), random({5, 4})});
  }

  AttentionSpec spec(Path path) const {
    AttentionSpec choices = spec_of(inputs[3], inputs[4], inputs[5]);
    choices.path = path;
    return choices;
  }

  // Result of batch entry b by itself, with query 0 at position `first` and `of_keys` keys.
  Tensor alone(int64_t b, int64_t first, int64_t count, int64_t of_keys) const {
    AttentionSpec own = spec(Path::composed);
    own.scope = shifted(own.scope, first, count);
    own.bias = shifted(own.bias, first, count);
    return attention(inputs[0][b].unsqueeze(0).narrow(2, 0, count),
                     inputs[1][b].unsqueeze(0).narrow(2, 0, of_keys),
                     inputs[2][b].unsqueeze(0).narrow(2, 0, of_keys), own)
        .context[0];
  }

  void expect_same(const Tensor& found, const Tensor& wanted) {
    EXPECT_TRUE(at::allclose(found, wanted, 1e-11, 1e-12));
    const Tensor upstream = at::randn_like(wanted);
    const Tensors of_found = gradients((found * upstream).sum(), inputs, false);
    const Tensors of_wanted = gradients((wanted * upstream).sum(), inputs, false);
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_TRUE(at::allclose(of_found[i], of_wanted[i], 1e-10, 1e-11)) << i;
  }
};

TEST_F(Cached, QueriesAreTheLastOfTheKeys) {
  const Tensor wanted = at::stack({alone(0, 6, 3, 9), alone(1, 6, 3, 9)});
  for (const Path path : paths) {
    AttentionSpec last = spec(path);
    last.align = Align::last;
    expect_same(attention(inputs[0], inputs[1], inputs[2], last).context, wanted);
    AttentionSpec moved = spec(path);
    moved.query_offsets = at::full({}, 6, at::kLong);
    expect_same(attention(inputs[0], inputs[1], inputs[2], moved).context, wanted);
  }
}

TEST_F(Cached, QueriesOfEachEntryStandWhereTheirOffsetSays) {
  const Tensor wanted = at::stack({alone(0, 6, 3, 9), alone(1, 4, 3, 9)});
  for (const Path path : paths) {
    AttentionSpec moved = spec(path);
    moved.query_offsets = offsets;
    expect_same(attention(inputs[0], inputs[1], inputs[2], moved).context, wanted);
    const AttentionSpec all = placed(moved, 2, queries, keys);
    EXPECT_FALSE(all.query_offsets.defined());
    expect_same(attention(inputs[0], inputs[1], inputs[2], all).context, wanted);
  }
}

// The last query that is not padding is at the last key that is not padding.
TEST_F(Cached, LengthsOfQueriesAndKeysSayWhereTheLastStand) {
  const Tensor padding = at::zeros({2, 2, 3}, at::kDouble);
  const Tensor wanted = at::stack({alone(0, 6, 3, 9), at::cat({alone(1, 4, 1, 5), padding}, 1)});
  for (const Path path : paths) {
    AttentionSpec last = spec(path);
    last.scope = last.scope & key_lengths(key_lengths_of) & query_lengths(query_lengths_of);
    last.align = Align::last;
    const auto [context, lse] = attention(inputs[0], inputs[1], inputs[2], last);
    expect_same(context, wanted);
    EXPECT_TRUE(
        (lse[1].narrow(1, 1, 2) == -std::numeric_limits<double>::infinity()).all().item<bool>());
  }
}

// The query of a decoding step among cached keys.
TEST(Align, OfOneQueryIsTheLastPosition) {
  const Tensor query = at::zeros({1, 1}), keys = at::zeros({5, 1}), value = at::eye(5);
  const AttentionSpec step = {
      .scope = causal(), .bias = alibi(at::full({1}, 1.0)), .align = Align::last};
  const Tensor weights = attention(query, keys, value, step).context[0];
  const Tensor wanted = at::arange(-4.0, 1.0).softmax(0).to(at::kFloat);
  EXPECT_TRUE(at::allclose(weights, wanted, 1e-6, 1e-7));
}

TEST(Align, TakesOffsetsThatFit) {
  const Tensor x = at::randn({2, 1, 4, 3});
  const auto with = [&](const Tensor& offsets, const Bias& bias = {}) {
    attention(x, x, x, {.bias = bias, .query_offsets = offsets});
  };
  const Tensor moved = at::tensor({0, 1}, at::kLong);
  expect_errors({
      {[&] { with(at::zeros({2})); }, "query_offsets are Float of shape [2]; they must be int64"},
      {[&] { with(at::zeros({3}, at::kLong)); }, "of shape [batch], 2 of them, or one number"},
      {[&] {
         with(moved, grid(at::zeros({3, 3})));
       },
       "compute the entries one by one"},
      {[&] {
         attention(x, x, x, {.bias = alibi(at::ones({2, 2}))});
       },
       "the slopes of alibi have shape [2, 2]; a number for each batch entry and head is [2, 1]"},
      {[&] { attention(x, x, x, {.bias = alibi(at::ones({1}), 0, at::zeros({2}))}); },
       "the offsets of alibi are Float of shape [2]; they must be int64 of shape [batch], 2"},
      {[&] { window(Window{}, at::zeros({2})); },
       "the offsets of a window must be int64 of shape [batch]"},
      {[&] { query_lengths(at::zeros({2})); }, "query lengths must be int64 of shape [batch]"},
      {[&] { attention(x, x, x, {.scope = query_lengths(at::full({2}, 5, at::kLong))}); },
       "query lengths must be between 0 and the number of queries 4, got 5 to 5"},
      {[&] { attention(x, x, x, {.scope = window(Window{}, at::zeros({3}, at::kLong))}); },
       "the offsets of a window are for a batch of 3, the queries have one of 2"},
      {[] { parse_align("end"); }, "align is 'end'; it must be first or last"},
  });
}

// Offsets far beyond the keys see the same as at the ends, and tables do not grow with them.
TEST(Align, TakesOffsetsOfAnySize) {
  const Tensor x = at::randn({2, 1, 4, 3}, at::kDouble), table = at::randn({5, 3}, at::kDouble);
  const int64_t far = int64_t{1} << 60;
  for (const Path path : paths) {
    const AttentionSpec spec = {.bias = relative_keys(table),
                                .path = path,
                                .query_offsets = at::tensor({-far, far}, at::kLong)};
    const Tensor context = attention(x, x, x, spec).context;
    for (const int64_t b : {0, 1}) {
      const Tensor own = x[b][0], row = at::matmul(own, table[b == 0 ? 4 : 0]) / std::sqrt(3.0);
      const Tensor alone = attention(own, own, own, {.bias = dense_bias(row.unsqueeze(1))}).context;
      EXPECT_TRUE(at::allclose(context[b][0], alone, 1e-11, 1e-12));
    }
  }
}

}  // namespace placed_test
}  // namespace attend::reference
