// Tests of the two terms of disentangled attention, against loops over their formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/graph.h"
#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace disentangled_test {

using at::Tensor;
using reference::Tensors;

Tensor doubles(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

struct Sizes {
  int64_t batch = 2, heads = 2, key_heads = 2, queries = 3, keys = 3, depth = 4, columns = 6;
};

// Queries, keys, values and both tables.
Tensors inputs_of(const Sizes& s) {
  at::manual_seed(s.queries + 7 * s.keys);
  return {doubles({s.batch, s.heads, s.queries, s.depth}),
          doubles({s.batch, s.key_heads, s.keys, s.depth}),
          doubles({s.batch, s.key_heads, s.keys, 3}), doubles({s.heads, s.columns, s.depth}),
          doubles({s.columns, s.depth})};
}

AttentionSpec spec_of(const Tensors& x, int64_t maximum_distance = 0, const Tensor& offsets = {}) {
  return {.score = "disentangled_dot",
          .bias = content_to_position({.table = x[3],
                                       .maximum_distance = maximum_distance,
                                       .offset = 1,
                                       .offsets = offsets}) +
                  position_to_content({.table = x[4],
                                       .maximum_distance = maximum_distance,
                                       .offset = 1,
                                       .offsets = offsets})};
}

// The scores by their formula, one number at a time.
Tensor scores_by_loops(const Tensors& x, int64_t maximum_distance, const Tensor& offsets) {
  const int64_t batch = x[0].size(0), heads = x[0].size(1), queries = x[0].size(2);
  const int64_t keys = x[1].size(2), shared = heads / x[1].size(1);
  const double scale = 1 / std::sqrt(3.0 * static_cast<double>(x[0].size(3)));
  Tensor scores = at::zeros({batch, heads, queries, keys}, at::kDouble);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t offset = 1 + (offsets.defined() ? offsets[b].item<int64_t>() : 0);
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) {
        const auto column =
            position_columns(at::tensor({i + offset - j}), x[4].size(0), maximum_distance)
                .item<int64_t>();
        for (int64_t h = 0; h < heads; ++h) {
          const Tensor q = x[0][b][h][i], k = x[1][b][h / shared][j];
          scores[b][h][i][j] = scale * (q.dot(k) + q.dot(x[3][h][column]) + k.dot(x[4][column]));
        }
      }
    }
  }
  return scores;
}

class EverySize : public testing::TestWithParam<Sizes> {};

TEST_P(EverySize, EqualsTheFormulaOnEveryPath) {
  const Sizes& s = GetParam();
  const Tensors x = inputs_of(s);
  const Tensor offsets = at::arange(s.batch, at::kLong) * 2 - 1;
  const Tensor lengths =
      at::tensor({s.keys, std::max<int64_t>(1, s.keys - 2)}).narrow(0, 0, s.batch);
  for (const int64_t distance : {0, 40}) {
    for (const Tensor& moved : {Tensor(), offsets}) {
      AttentionSpec spec = spec_of(x, distance, moved);
      const Tensor wanted = scores_by_loops(x, distance, moved);
      EXPECT_TRUE(at::allclose(attention_scores(x[0], x[1], spec), wanted, 1e-12, 1e-12));
      spec.scope = key_lengths(lengths);
      const Tensor padding = at::arange(s.keys).unsqueeze(0) >= lengths.unsqueeze(1);
      const Tensor weights =
          wanted.masked_fill(padding.unsqueeze(1).unsqueeze(1), -INFINITY).softmax(-1);
      const Tensor values = x[2].repeat_interleave(s.heads / s.key_heads, 1);
      for (const Path path : {Path::fused, Path::composed}) {
        spec.path = path;
        const auto [context, lse] = attention(x[0], x[1], x[2], spec);
        EXPECT_TRUE(at::allclose(context, at::matmul(weights, values), 1e-11, 1e-12));
        EXPECT_TRUE(at::allclose(attention_weights(x[0], x[1], lse, spec), weights, 1e-11, 1e-12));
      }
    }
  }
}

TEST_P(EverySize, GradientsOfBothPathsAgree) {
  const Sizes& s = GetParam();
  const Tensors x = reference::leaves(inputs_of(s));
  const Tensor upstream = doubles({s.batch, s.heads, s.queries, 3});
  const auto run = [&](Path path) {
    AttentionSpec spec = spec_of(x, 40);
    spec.scope = causal(2);
    spec.path = path;
    return reference::gradients((attention(x[0], x[1], x[2], spec).context * upstream).sum(), x,
                                false);
  };
  const Tensors fused = run(Path::fused), composed = run(Path::composed);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(at::allclose(fused[i], composed[i], 1e-10, 1e-11)) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Disentangled, EverySize,
    testing::Values(
        Sizes{.queries = 1, .keys = 1}, Sizes{.queries = 3, .keys = 3},
        Sizes{.key_heads = 1, .queries = 1, .keys = 59, .columns = 16},
        Sizes{.batch = 1, .queries = 59, .keys = 59, .depth = 5, .columns = 16},
        Sizes{.batch = 1, .heads = 1, .key_heads = 1, .queries = 111, .keys = 59, .columns = 12},
        Sizes{.batch = 1,
              .heads = 1,
              .key_heads = 1,
              .queries = 59,
              .keys = 111,
              .depth = 3,
              .columns = 32}),
    [](const auto& info) {
      return std::to_string(info.param.queries) + "_by_" + std::to_string(info.param.keys);
    });

// Chunks of keys have their own partial gradients.
TEST(Disentangled, GradientsOfLongSequences) {
  const Sizes s{.batch = 1, .heads = 1, .key_heads = 1, .queries = 70, .keys = 700, .columns = 32};
  const Tensors x = reference::leaves(inputs_of(s));
  const Tensor upstream = doubles({1, 1, s.queries, 3});
  const auto run = [&](Path path) {
    AttentionSpec spec = spec_of(x, 200);
    spec.path = path;
    return reference::gradients((attention(x[0], x[1], x[2], spec).context * upstream).sum(), x,
                                false);
  };
  const Tensors fused = run(Path::fused), composed = run(Path::composed);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(at::allclose(fused[i], composed[i], 1e-9, 1e-11)) << i;
}

TEST(Disentangled, GradientsAreDifferences) {
  const Tensors x = inputs_of({.batch = 1, .queries = 3, .keys = 4});
  const auto value = [](const Tensors& in) {
    AttentionSpec spec = spec_of(in, 40);
    const auto [context, lse] = attention(in[0], in[1], in[2], spec);
    return context.square().sum() + lse.sum();
  };
  const std::vector<std::string> names = {"query", "key", "value", "by query", "by key"};
  reference::expect_gradients(value, x, names);
  reference::expect_second_gradients(value, x, names);
}

// A second pair of terms with other columns is added to the dense bias.
TEST(Disentangled, TermsOfOtherDistancesAreAdded) {
  const Tensors x = inputs_of({.queries = 5, .keys = 7});
  const Bias near = content_to_position({.table = x[3]});
  const Bias far = position_to_content({.table = x[4], .maximum_distance = 40, .offset = 3});
  const auto scores = [&](const Bias& bias) {
    return attention_scores(x[0], x[1], {.score = "dot", .bias = bias});
  };
  const Tensor wanted = scores(near) + scores(far) + scores(far) - 2 * scores({});
  for (const Path path : {Path::fused, Path::composed}) {
    const AttentionSpec spec = {.score = "dot", .bias = near + far + far, .path = path};
    EXPECT_TRUE(at::allclose(attention_scores(x[0], x[1], spec), wanted, 1e-12, 1e-12));
    const auto [context, lse] = attention(x[0], x[1], x[2], spec);
    EXPECT_TRUE(at::allclose(context, at::matmul(wanted.softmax(-1), x[2]), 1e-11, 1e-12));
  }
}

// Scores that look back are computed query by query; edges, pair by pair.
// Factors of the scores leave biases as they are.
TEST(Disentangled, IsNotMultipliedByScalableSoftmax) {
  const Sizes sizes;
  const Tensors x = inputs_of(sizes);
  AttentionSpec spec = spec_of(x);
  const Tensor product = attention_scores(x[0], x[1], {.score = spec.score});
  const Tensor all = attention_scores(x[0], x[1], {.score = spec.score, .bias = spec.bias});
  const Tensor strength = at::full({1}, 1.5, at::kDouble);
  const Tensor factor = strength * std::log(static_cast<double>(sizes.keys));
  const Tensor expected = at::matmul((all + (factor - 1) * product).softmax(-1), x[2]);
  spec.normaliser = Normaliser("scalable", 0, strength);
  EXPECT_TRUE(attention(x[0], x[1], x[2], spec).context.allclose(expected, 1e-12, 1e-12));
}

TEST(Disentangled, TakesNoKeysAndNoEntries) {
  for (const Sizes& sizes : {Sizes{.keys = 0}, Sizes{.batch = 0}})
    for (const char* normaliser : {"softmax", "monotonic"}) {
      const Tensors x = inputs_of(sizes);
      AttentionSpec spec = spec_of(x, 0, at::zeros({sizes.batch}, at::kLong));
      spec.normaliser = normaliser;
      EXPECT_EQ(attention(x[0], x[1], x[2], spec).context.sizes(),
                (at::IntArrayRef{sizes.batch, sizes.heads, sizes.queries, 3}));
    }
}

TEST(Disentangled, GoesWithEveryWayOfComputing) {
  const Tensors x = inputs_of({.queries = 5, .keys = 5});
  const Tensor v = doubles({4}), w = doubles({4});
  AttentionSpec spec = spec_of(x, 40);
  spec.score = Score("coverage", {{"v", v}, {"w_c", w}});
  const auto run = [&](Path path) {
    spec.path = path;
    return attention(x[0], x[1], x[2], spec).context;
  };
  EXPECT_TRUE(at::allclose(run(Path::fused), run(Path::composed), 1e-11, 1e-12));
  spec.score = "disentangled_dot";
  const Tensor whole = run(Path::composed);
  spec.scope = edges(at::arange(0, 26, 5), at::arange(5).repeat(5));
  for (const Path path : {Path::fused, Path::composed})
    EXPECT_TRUE(at::allclose(run(path), whole, 1e-11, 1e-12));
}

// The columns of make_log_bucket_position of transformers 5.24.0, plus K, for 8 buckets and
// distances up to 40.
TEST(PositionColumns, AreThoseOfDebertaV2) {
  const Tensor distance = at::tensor({-60, -39, -20, -9, -5, -4, -3, 0, 1, 4, 5, 6, 9, 20, 39, 60});
  const Tensor wanted = at::tensor({0, 1, 1, 2, 3, 4, 5, 8, 9, 12, 13, 13, 14, 15, 15, 15});
  EXPECT_TRUE(position_columns(distance, 16, 40).equal(wanted))
      << position_columns(distance, 16, 40);
  EXPECT_TRUE(position_columns(at::tensor({-9, -8, -7, 0, 7, 8}), 16, 0)
                  .equal(at::tensor({0, 0, 1, 8, 15, 15})));
}

TEST(Disentangled, RefusesWhatDoesNotFit) {
  const auto with = [](const Bias& bias) {
    const Tensor x = at::ones({1, 2, 4, 3});
    attention(x, x, x, {.bias = bias});
  };
  expect_errors({{[&] {
                    with(content_to_position({.table = at::ones({5, 3})}));
                  },
                  "the table of content_to_position has shape [5, 3]; it must have shape [2 K, 3]"},
                 {[&] {
                    with(position_to_content({.table = at::ones({3, 4, 3})}));
                  },
                  "an axis of 2 heads"},
                 {[&] {
                    with(position_to_content({.table = at::ones({4, 3}), .maximum_distance = 2}));
                  },
                  "4 columns to a maximum distance of 2"}});
}

}  // namespace disentangled_test
}  // namespace attend
