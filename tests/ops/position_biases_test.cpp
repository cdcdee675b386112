// Tests of forgetting, CoPE and other biases of positions beyond the cases of bias_cases().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace position_biases_test {

using at::Tensor;
using reference::Tensors;

Tensor doubles(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

// Forgetting in float32 over 4,096 tokens is as exact as a score: sums of the gates reach -3,000,
// and the last digit of such a float32 number is 2^-12. An error of a score is a relative error of
// a weight; float32 products of 16 numbers have errors of about 2^-22.
TEST(Forget, StaysExactOverLongSequences) {
  at::manual_seed(1);
  constexpr int64_t count = 4096;
  const Tensor query = doubles({1, 1, count, 16}), key = doubles({1, 1, count, 16});
  const Tensor value = doubles({1, 1, count, 3}), gates = doubles({1, 1, count});
  const auto run = [&](at::ScalarType type, Path path) {
    const auto leaf = [type](const Tensor& x) { return x.to(type).detach().requires_grad_(); };
    const Tensor q = leaf(query), k = leaf(key), v = leaf(value), g = leaf(gates);
    const auto result = attention(q, k, v, {.scope = causal(), .bias = forget(g), .path = path});
    (result.context * value.to(type)).sum().backward();
    return Tensors{
        result.context.detach(), result.lse.detach(), q.grad(), k.grad(), v.grad(), g.grad()};
  };
  const Tensors exact = run(at::kDouble, Path::composed);
  const Tensors doubled = run(at::kDouble, Path::fused), fused = run(at::kFloat, Path::fused);
  // q and k themselves are rounded to float32.
  for (size_t i = 0; i < exact.size(); ++i) {
    const double size = exact[i].abs().max().item<double>();
    EXPECT_LT((doubled[i] - exact[i]).abs().max().item<double>(), 1e-12 * size) << i;
    EXPECT_LT((fused[i].to(at::kDouble) - exact[i]).abs().max().item<double>(), 4e-6 * size) << i;
  }
}

// Dense biases of float32 sums would be wrong by the last digit of the sums.
TEST(Forget, DependsOnDifferencesOnly) {
  const Tensor gates = at::cat({at::full({60}, -1e4F), at::zeros({40})});
  const Tensor query = at::zeros({100, 4}), key = at::zeros({100, 4});
  const Tensor scores = attention_scores(query, key, {.scope = causal(), .bias = forget(gates)});
  for (int64_t back = 0; back < 30; ++back)
    EXPECT_NEAR(scores[99][99 - back].item<double>(), -std::log(2.0) * static_cast<double>(back),
                1e-5);
}

// A gate of 0 forgets everything before it, and gates after it still count.
TEST(Forget, TakesGatesOfZero) {
  Tensor gates = at::zeros({6}, at::kDouble);
  gates[3] = -std::numeric_limits<double>::infinity();
  const Tensor x = at::zeros({6, 2}, at::kDouble);
  const AttentionSpec spec{.scope = causal(), .bias = forget(gates)};
  const Tensor lse = attention(x, x, x, spec).lse;
  const Tensor weights = attention_weights(x, x, lse, spec);
  EXPECT_TRUE(at::equal(weights[3], at::tensor({0, 0, 0, 1, 0, 0}, at::kDouble)));
  EXPECT_TRUE(at::allclose(weights[5], at::tensor({0, 0, 0, 1, 2, 4}, at::kDouble) / 7));
}

// Scores with and without the sum of a query's own gates: each normaliser, in the kernels and by
// tensor operations.
TEST(Forget, WorksWithEveryNormaliser) {
  at::manual_seed(2);
  const Tensor query = doubles({2, 2, 7, 4}), key = doubles({2, 2, 9, 4});
  const Tensor value = doubles({2, 2, 9, 3}), gates = doubles({2, 2, 9}) + 1;
  const Tensor sums = at::log_sigmoid(gates).cumsum(2);
  const Tensor dense = -(sums.narrow(2, 0, 7).unsqueeze(3) - sums.unsqueeze(2)).abs();
  for (const char* normaliser : {"softmax", "temperature:2", "sigmoid", "none", "sparsemax",
                                 "entmax15", "monotonic", "hard"}) {
    SCOPED_TRACE(normaliser);
    const auto run = [&](const Bias& bias, const Tensor& sink) {
      return attention(query, key, value, {.bias = bias, .normaliser = normaliser, .sink = sink})
          .context;
    };
    EXPECT_TRUE(at::allclose(run(forget(gates), {}), run(dense_bias(dense), {}), 1e-12, 1e-12));
  }
  const Tensor sink = doubles({2});
  const auto run = [&](const Bias& bias) {
    return attention(query, key, value, {.bias = bias, .sink = sink}).context;
  };
  EXPECT_TRUE(at::allclose(run(forget(gates)), run(dense_bias(dense)), 1e-12, 1e-12));
}

TEST(Forget, RunsAlongEdges) {
  at::manual_seed(3);
  const Tensor offsets = at::tensor({0, 2, 5, 5, 8}, at::kLong);
  const Tensor keys = at::tensor({0, 3, 1, 2, 4, 0, 3, 4}, at::kLong);
  const Tensor gates = doubles({2, 5}), query = doubles({1, 2, 4, 3}), key = doubles({1, 2, 5, 3});
  const Tensor value = doubles({1, 2, 5, 2}), weight = doubles({1, 2, 4, 2});
  for (const Path path : {Path::fused, Path::composed}) {
    const reference::Function f = [&](const Tensors& x) {
      const AttentionSpec spec{.scope = edges(offsets, keys), .bias = forget(x[3]), .path = path};
      return (attention(x[0], x[1], x[2], spec).context * weight).sum();
    };
    reference::expect_gradients(f, {query, key, value, gates}, {"query", "key", "value", "gates"});
  }
  const Scope mask =
      dense_mask(at::tensor({1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1})
                     .view({4, 5})
                     .to(at::kBool));
  const auto run = [&](const Scope& scope, Path path) {
    return attention(query, key, value, {.scope = scope, .bias = forget(gates), .path = path})
        .context;
  };
  for (const Path path : {Path::fused, Path::composed})
    EXPECT_TRUE(at::allclose(run(edges(offsets, keys), path), run(mask, path), 1e-13, 1e-13));
}

// Numbers of the paper's rule, key by key.
Tensor cope_by_loops(const Tensor& query, const Tensor& key, const Tensor& table, int64_t offset) {
  const int64_t queries = query.size(0), keys = key.size(0);
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(1)));
  const auto product = [scale](const Tensor& a, const Tensor& b) {
    return scale * (a * b).sum().item<double>();
  };
  Tensor bias = at::zeros({queries, keys}, at::kDouble);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      double position = 0;
      for (int64_t t = j; t <= std::min(i + offset, keys - 1); ++t)
        position += 1 / (1 + std::exp(-product(query[i], key[t])));
      position = std::min(position, static_cast<double>(table.size(0) - 1));
      const auto below = static_cast<int64_t>(std::floor(position));
      const auto above = static_cast<int64_t>(std::ceil(position));
      const double share = position - std::floor(position);
      bias[i][j] =
          product(query[i], table[below]) * (1 - share) + product(query[i], table[above]) * share;
    }
  }
  return bias;
}

TEST(Cope, CountsKeysByTheirScores) {
  at::manual_seed(4);
  for (const auto& [queries, keys, positions, offset] :
       {std::array<int64_t, 4>{1, 1, 1, 0}, {3, 3, 2, 0}, {7, 7, 64, 0}, {4, 9, 3, 5}}) {
    const Tensor query = doubles({queries, 3}), key = doubles({keys, 3});
    const Tensor table = doubles({positions, 3});
    const Tensor plain = attention_scores(query, key, {});
    const Tensor got = attention_scores(query, key, {.bias = cope(table, offset)}) - plain;
    EXPECT_TRUE(at::allclose(got, cope_by_loops(query, key, table, offset), 1e-12, 1e-12));
  }
}

TEST(Cope, HasGradientsOnBothPaths) {
  at::manual_seed(5);
  const Tensor query = doubles({1, 4, 3, 2}), key = doubles({1, 2, 3, 2});
  const Tensor value = doubles({1, 2, 3, 2}), table = doubles({4, 5, 2});
  const Tensor weight = doubles({1, 4, 3, 2});
  for (const Path path : {Path::fused, Path::composed}) {
    const reference::Function f = [&](const Tensors& x) {
      return (attention(x[0], x[1], x[2], {.scope = causal(), .bias = cope(x[3]), .path = path})
                  .context *
              weight)
          .sum();
    };
    reference::expect_gradients(f, {query, key, value, table}, {"query", "key", "value", "table"});
  }
}

// Keys out of scope, such as padding, count nothing.
TEST(Cope, CountsKeysInScopeOnly) {
  at::manual_seed(7);
  const Tensor query = doubles({1, 1, 6, 4}), key = doubles({1, 1, 6, 4}), table = doubles({5, 4});
  const Scope lengths = key_lengths(at::tensor({4}, at::kLong));
  const Tensor got = attention(query, key, key, {.scope = lengths, .bias = cope(table)}).context;
  const Tensor part = key.narrow(2, 0, 4);
  EXPECT_TRUE(
      at::allclose(got, attention(query, part, part, {.bias = cope(table)}).context, 1e-13, 1e-13));
}

// Steps see the same positions as the whole sequence.
TEST(Cope, EqualsItselfInSteps) {
  at::manual_seed(6);
  const Tensor x = doubles({9, 4}), table = doubles({6, 4});
  const Tensor whole = attention(x, x, x, {.scope = causal(), .bias = cope(table)}).context;
  for (int64_t t = 0; t < 9; ++t) {
    const Tensor past = x.narrow(0, 0, t + 1);
    const Tensor step =
        attention(x.narrow(0, t, 1), past, past, {.bias = shifted(cope(table), t)}).context;
    EXPECT_TRUE(at::allclose(step[0], whole[t], 1e-13, 1e-13));
  }
}

TEST(Sandwich, HasTheFactorsOfThePaper) {
  EXPECT_TRUE(at::equal(sandwich_factors(4), at::tensor({0.5F, 0.25F, 0.5F / 3, 0.125F})));
  EXPECT_TRUE(at::equal(sandwich_factors(1), at::tensor({0.125F})));
}

TEST(PositionBiases, RefuseMisuse) {
  const Tensor x = at::randn({5, 4}), two = at::randn({2});
  const auto run = [&](const Bias& bias) { attention(x, x, x, {.bias = bias}); };
  const Tensor one = at::ones({}), units = at::ones({3});
  expect_errors({
      {[&] { run(forget(at::ones({4}))); },
       "the gates of forget have shape [4]; the last axis must have a number for each of the 5"},
      {[&] {
         run(forget(at::ones({2, 5})));
       },
       "does not broadcast to [batch, heads, positions]"},
      {[&] { run(forget(at::ones({5}), 0, at::zeros({2}, at::kLong))); },
       "the offsets of forget are Long of shape [2]; they must be int64 of shape [batch], 1"},
      {[&] { run(kerple_log(at::zeros({}), one)); },
       "the numbers of kerple_log must be positive, got 0"},
      {[&] { run(kerple_power(one, -one)); },
       "the numbers of kerple_power must be positive, got -1"},
      {[&] { run(kerple_power(two, one)); }, "it must have one number for each of the 1 heads"},
      {[&] { sandwich(one, 7); }, "the depth of the sinusoids is 7; it must be even, 2 or more"},
      {[&] { sandwich_factors(0); }, "heads is 0; it must be 1 or more"},
      {[&] {
         run(cope(at::ones({3, 5})));
       },
       "the table of cope has shape [3, 5]; it must have shape [positions, 4]"},
      {[&] {
         shifted_keys(cope(at::ones({3, 4})), 1, 2);
       },
       "cope counts from each key to the query; compute all keys in one call"},
      {[&] {
         attention(x, x, x, {.score = Score("squared_distance"), .bias = cope(at::ones({3, 4}))});
       },
       "the score is squared_distance; take a score of the dot family"},
      {[&] {
         run(fire({units, units, at::ones({2}), one, one, one}));
       },
       "the layers of fire have shapes [3], [3], [2] and []"},
      {[&] {
         run(fire({units, units, units, one, units, one}));
       },
       "c of fire has shape [3]; it must be one number"},
  });
}

}  // namespace position_biases_test
}  // namespace attend
