// Tests of weights on demand and their summaries: kernels against the composed path, and this path
// against its own weights.
#include <gtest/gtest.h>

#include <limits>

#include "tests/ops/bias_cases.h"

namespace attend::reference {
namespace weights_test {

using at::Tensor;

bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

const Sizes sizes = {.batch = 2, .heads = 4, .key_heads = 2, .queries = 17, .keys = 13};

struct Summaries {
  Tensor weights, entropy, sums, argmax;
  TopWeights top;
};

Summaries summaries_of(const Problem& p, const Tensor& lse, const AttentionSpec& spec,
                       const Selection& selection) {
  return {attention_weights(p.query, p.key, lse, spec, selection),
          attention_entropy(p.query, p.key, lse, spec, selection),
          attention_column_sums(p.query, p.key, lse, spec, selection),
          attention_argmax(p.query, p.key, lse, spec, selection),
          attention_top(p.query, p.key, lse, 5, spec, selection)};
}

class SummariesOfNormaliser : public testing::TestWithParam<NormaliserRow> {};

TEST_P(SummariesOfNormaliser, AreTheSameOnBothPaths) {
  for (const char* score : {"scaled_dot", "additive", "squared_distance"}) {
    const Problem p = make_problem(score_row(score), sizes, Given::all, true, at::kDouble, 1);
    const bool is_dot = score_row(score).family == Family::dot;
    if (GetParam().factor != nullptr && !is_dot) continue;  // composed
    const Bias bias = alibi(alibi_slopes(4).to(at::kDouble));
    for (const ScopeCase& scope : scope_cases(sizes)) {
      for (const Selection& selection :
           {Selection{}, Selection{.heads = {3, 1, 3}, .first_row = 2, .rows = 5},
            Selection{.first_row = 17}}) {
        AttentionSpec spec = {.score = p.score,
                              .scope = scope.scope,
                              .bias = bias,
                              .normaliser = GetParam().name,
                              .path = Path::composed};
        const Tensor lse = attention(p.query, p.key, p.value, spec).lse;
        const Summaries composed = summaries_of(p, lse, spec, selection);
        spec.path = Path::fused;
        const Summaries fused = summaries_of(p, lse, spec, selection);
        EXPECT_TRUE(close(fused.weights, composed.weights)) << scope.name;
        EXPECT_TRUE(close(fused.sums, composed.sums)) << scope.name;
        EXPECT_TRUE(close(fused.top.weights, composed.top.weights)) << scope.name;
        EXPECT_TRUE(at::equal(fused.top.keys, composed.top.keys)) << scope.name;
        EXPECT_TRUE(at::equal(fused.argmax, composed.argmax)) << scope.name;
        if (GetParam().name == "none") continue;  // negative weights have no logarithm
        EXPECT_TRUE(close(fused.entropy, composed.entropy)) << scope.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SummariesOfNormaliser, testing::ValuesIn(fused_normalisers()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Summaries, SayWhatTheWeightsSay) {
  const Problem p = make_problem(score_row("dot"), sizes, Given::all, false, at::kDouble, 2);
  const AttentionSpec spec = {.score = p.score, .scope = causal()};
  const Tensor lse = attention(p.query, p.key, p.value, spec).lse;
  const Tensor all = attention_weights(p.query, p.key, lse, spec);
  const Summaries chosen = summaries_of(p, lse, spec, {.heads = {2}, .first_row = 1, .rows = 4});
  const Tensor rows = all.narrow(1, 2, 1).narrow(2, 1, 4);
  EXPECT_TRUE(close(chosen.weights, rows));
  EXPECT_TRUE(close(chosen.sums, rows.sum(2)));
  EXPECT_TRUE(close(chosen.entropy, -at::xlogy(rows, rows).sum(-1)));
  EXPECT_TRUE(at::equal(chosen.argmax, rows.argmax(-1)));
  EXPECT_TRUE(close(chosen.top.weights, std::get<0>(rows.topk(5))));
  // Row 1 sees two keys: three of the five places are empty.
  EXPECT_TRUE(at::equal(chosen.top.keys[0][0][0].narrow(0, 2, 3), at::full({3}, -1, at::kLong)));
  EXPECT_TRUE(at::equal(chosen.top.weights[0][0][0].narrow(0, 2, 3), at::zeros({3}, at::kDouble)));
}

TEST(Summaries, TakeQueriesOfTwoAndThreeAxes) {
  const Tensor x = at::randn({2, 3, 4}, at::kDouble);
  for (const Path path : {Path::composed, Path::fused}) {
    const AttentionSpec spec = {.path = path};
    const Tensor lse = attention(x, x, x).lse;
    EXPECT_EQ(attention_weights(x, x, lse, spec, {.rows = 2}).sizes(), at::IntArrayRef({2, 2, 3}));
    EXPECT_EQ(attention_top(x, x, lse, 4, spec).keys.sizes(), at::IntArrayRef({2, 3, 4}));
    EXPECT_EQ(attention_argmax(x, x, lse, spec).sizes(), at::IntArrayRef({2, 3}));
    EXPECT_EQ(attention_entropy(x[0], x[0], lse[0], spec).sizes(), at::IntArrayRef({3}));
    EXPECT_EQ(attention_column_sums(x[0], x[0], lse[0], spec).sizes(), at::IntArrayRef({3}));
  }
}

TEST(Summaries, HaveGradientsOnRequest) {
  const Tensors inputs = {at::randn({1, 2, 3, 2}, at::kDouble),
                          at::randn({1, 1, 4, 2}, at::kDouble)};
  const Function function = [](const Tensors& x) {
    const AttentionSpec spec = {.scope = causal(1)};
    const Tensor lse = attention(x[0], x[1], x[1], spec).lse;
    return attention_entropy(x[0], x[1], lse, spec).square().sum() +
           attention_column_sums(x[0], x[1], lse, spec, {.first_row = 1}).pow(3).sum() +
           attention_top(x[0], x[1], lse, 2, spec).weights.square().sum();
  };
  expect_gradients(function, inputs, {"query", "key"});
}

TEST(Summaries, OfHalvesAreFloats) {
  const Tensor x = at::randn({5, 4}).to(at::kBFloat16);
  for (const Path path : {Path::composed, Path::fused}) {
    const AttentionSpec spec = {.path = path};
    const Tensor lse = attention(x, x, x, spec).lse;
    EXPECT_EQ(attention_weights(x, x, lse, spec).scalar_type(), at::kBFloat16);
    const Tensor sums = attention_column_sums(x, x, lse, spec);
    EXPECT_EQ(sums.scalar_type(), at::kFloat);
    EXPECT_NEAR(sums.sum().item<double>(), 5, 1e-5);
  }
}

}  // namespace weights_test
}  // namespace attend::reference
