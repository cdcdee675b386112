// Tests of scores and normalisers that look back: all queries at once against one at a time.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace past_test {

using at::Tensor;

bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

constexpr Sizes sizes = {.batch = 2,
                         .heads = 4,
                         .key_heads = 2,
                         .queries = 4,
                         .keys = 5,
                         .query_depth = 3,
                         .key_depth = 2,
                         .attention_depth = 3};

struct Case {
  std::string score, normaliser;
};

std::string name_of(const Case& c) { return c.score + "_" + c.normaliser; }

class LooksBack : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    problem = make_problem(score_row(GetParam().score), sizes, Given::all, false, at::kDouble, 4);
    const auto random = [](at::IntArrayRef shape) { return at::randn(shape, at::kDouble); };
    spec = {.score = problem.score,
            .scope = (window(3) | global_tokens(2)) &
                     key_lengths(at::tensor(std::vector<int64_t>{5, 4}, at::kLong)),
            .bias = dense_bias(random({4, 5})) + alibi(random({4}).abs()) +
                    gaussian(random({2, 4, 4}), random({2, 4, 4}).abs() + 1) +
                    buckets({.table = random({4, 8}), .maximum_distance = 11}),
            .normaliser = Normaliser(GetParam().normaliser),
            .soft_cap = 3};
  }

  Problem problem;
  AttentionSpec spec;
};

// Each step has one query, and the caller keeps the past.
TEST_P(LooksBack, OneQueryAtATimeAsAllAtOnce) {
  for (const Path path : paths_of(problem, spec)) {
    SCOPED_TRACE(path == Path::fused ? "fused" : "composed");
    spec.path = path;
    const auto whole = attention(problem.query, problem.key, problem.value, spec);
    const Tensor all = attention_weights(problem.query, problem.key, whole.lse, spec);
    const Tensor scores = attention_scores(problem.query, problem.key, spec);
    PastWeights past;
    for (int64_t i = 0; i < sizes.queries; ++i) {
      AttentionSpec step = spec;
      step.scope = shifted(spec.scope, i, 1);
      step.bias = shifted(spec.bias, i, 1);
      step.past = past;
      const Tensor query = problem.query.narrow(2, i, 1);
      const auto [context, lse] = attention(query, problem.key, problem.value, step);
      const Tensor weights = attention_weights(query, problem.key, lse, step);
      EXPECT_TRUE(close(context, whole.context.narrow(2, i, 1))) << i;
      EXPECT_TRUE(close(lse, whole.lse.narrow(2, i, 1))) << i;
      EXPECT_TRUE(close(weights, all.narrow(2, i, 1))) << i;
      EXPECT_TRUE(close(attention_scores(query, problem.key, step), scores.narrow(2, i, 1))) << i;
      past = after(past, weights.squeeze(2));
    }
    EXPECT_TRUE(close(past.previous, all.select(2, sizes.queries - 1)));
    EXPECT_TRUE(close(past.total, all.sum(2)));
  }
}

// A call that continues another one, with inputs of four, three and two axes.
TEST_P(LooksBack, GoesOnFromThePastOfAnyAxes) {
  const Sizes flat = {.batch = 2, .queries = 5, .keys = 4};
  const Problem p =
      make_problem(score_row(GetParam().score), flat, Given::all, false, at::kDouble, 5);
  for (const int64_t axes : {4, 3, 2}) {
    const auto of_axes = [&](const Tensor& x) {
      return axes == 4 ? x : axes == 3 ? x.squeeze(1) : x.squeeze(1)[1];
    };
    const Tensor q = of_axes(p.query), k = of_axes(p.key), v = of_axes(p.value);
    AttentionSpec begun = {.score = p.score, .normaliser = Normaliser(GetParam().normaliser)};
    const auto whole = attention(q, k, v, begun);
    const Tensor weights = attention_weights(q, k, whole.lse, begun);
    PastWeights past;
    for (int64_t i = 0; i < 2; ++i) past = after(past, weights.select(-2, i));
    begun.past = past;
    const Tensor rest = q.narrow(-2, 2, 3);
    EXPECT_TRUE(close(attention(rest, k, v, begun).context, whole.context.narrow(-2, 2, 3)));
    const Tensor lse = whole.lse.narrow(-1, 2, 3);
    EXPECT_TRUE(close(attention_weights(rest, k, lse, begun), weights.narrow(-2, 2, 3))) << axes;
  }
}

TEST_P(LooksBack, HasGradientsThroughEveryQueryAndThePast) {
  const Sizes small = {.batch = 1,
                       .heads = 2,
                       .key_heads = 1,
                       .queries = 3,
                       .keys = 3,
                       .query_depth = 2,
                       .key_depth = 2,
                       .attention_depth = 2};
  const Problem p =
      make_problem(score_row(GetParam().score), small, Given::all, true, at::kDouble, 6);
  Tensors inputs = {p.query, p.key, p.value, at::rand({1, 2, 3}, at::kDouble),
                    at::rand({1, 2, 3}, at::kDouble)};
  std::vector<std::string> names = {"query", "key", "value", "previous", "total"};
  for (const auto& [name, tensor] : p.score.parameters()) {
    names.push_back(name);
    inputs.push_back(tensor);
  }
  for (const Path path : {Path::automatic, Path::composed}) {
    const Function function = [&](const Tensors& x) {
      Parameters parameters;
      for (size_t i = 5; i < x.size(); ++i) parameters.emplace(names[i], x[i]);
      const auto result = attention(x[0], x[1], x[2],
                                    {.score = Score(p.score.row().name, parameters),
                                     .scope = causal(1),
                                     .normaliser = Normaliser(GetParam().normaliser),
                                     .past = {x[3], x[4]},
                                     .path = path});
      return result.context.pow(3).sum() + result.lse.square().sum();
    };
    expect_gradients(function, inputs, names);
    if (!Normaliser(GetParam().normaliser).row().twice_differentiable) continue;
    expect_second_gradients(function, inputs, names);
  }
}

TEST_P(LooksBack, SummariesAreThoseOfTheWeights) {
  const Tensor lse = attention(problem.query, problem.key, problem.value, spec).lse;
  const Tensor all = attention_weights(problem.query, problem.key, lse, spec);
  const Selection selection = {.heads = {3, 1}, .first_row = 1, .rows = 2};
  const Tensor rows =
      all.index_select(1, at::tensor(std::vector<int64_t>{3, 1}, at::kLong)).narrow(2, 1, 2);
  const auto &q = problem.query, &k = problem.key;
  EXPECT_TRUE(close(attention_weights(q, k, lse, spec, selection), rows));
  EXPECT_TRUE(close(attention_column_sums(q, k, lse, spec, selection), rows.sum(2)));
  EXPECT_TRUE(close(attention_entropy(q, k, lse, spec, selection), -at::xlogy(rows, rows).sum(-1)));
  EXPECT_TRUE(
      close(attention_top(q, k, lse, 2, spec, selection).weights, std::get<0>(rows.topk(2))));
}

TEST_P(LooksBack, DropsTheSameOnBothPathsAndOthersForEachQuery) {
  AttentionSpec dropping = spec;
  dropping.bias = {};
  dropping.scope = {};
  const auto paths = paths_of(problem, dropping);
  const Tensor identity = at::eye(5, at::kDouble).expand({2, 2, 5, 5});
  const Tensor weights = attention(problem.query, problem.key, identity, dropping).context;
  dropping.dropout = {.probability = 0.5, .seed = 9};
  dropping.path = Path::composed;
  const Tensor composed = attention(problem.query, problem.key, identity, dropping).context;
  dropping.path = paths.back();
  EXPECT_TRUE(close(attention(problem.query, problem.key, identity, dropping).context, composed));
  // Kept weights are doubled by dropout; the past has the weights before dropout.
  const Tensor kept = composed != 0;
  EXPECT_TRUE(close(composed, 2 * weights * kept));
  EXPECT_FALSE(at::equal(kept.select(2, 0), kept.select(2, 1)));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, LooksBack,
    testing::Values(Case{"location_sensitive", "softmax"}, Case{"coverage", "softmax"},
                    Case{"coverage", "temperature:0.6"}, Case{"location_sensitive", "sparsemax"},
                    Case{"additive", "monotonic"}, Case{"coverage", "monotonic"}),
    [](const auto& info) { return test_name(name_of(info.param)); });

TEST(Past, OfARowWithoutMemoryIsNotRead) {
  const Tensor x = at::randn({3, 2});
  EXPECT_TRUE(at::equal(attention(x, x, x, {.past = {at::ones({7}), at::ones({7})}}).context,
                        attention(x, x, x).context));
}

TEST(Past, OfHalvesIsComputedInFloats) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const Problem p = make_problem(score_row("coverage"), sizes, Given::required, false, dtype, 8);
    const AttentionSpec spec = {.score = p.score};
    const auto result = attention(p.query, p.key, p.value, spec);
    EXPECT_EQ(result.context.scalar_type(), dtype);
    EXPECT_EQ(result.lse.scalar_type(), at::kFloat);
    const Tensor weights = attention_weights(p.query, p.key, result.lse, spec);
    EXPECT_EQ(weights.scalar_type(), dtype);
    // Five weights, each rounded to 8 or 11 bits.
    EXPECT_LE((weights.to(at::kDouble).sum(-1) - 1).abs().max().item<double>(), 5 * 0x1p-8);
  }
}

TEST(Past, MisuseSaysWhatIsWanted) {
  const Problem p = make_problem(score_row("coverage"), sizes, Given::all, false, at::kDouble, 9);
  const auto with = [&](const PastWeights& past) {
    attention(p.query, p.key, p.value, {.score = p.score, .past = past});
  };
  const Tensor v = at::ones({2}), u = at::ones({2, 3});
  expect_errors({
      {[&] {
         with({at::ones({2, 5}, at::kDouble), {}});
       },
       "previous of the past has shape [2, 5]; it must have shape [2, 4, 5], the weights of one "
       "query"},
      {[&] {
         with({{}, at::ones({2, 4, 4, 5}, at::kDouble)});
       },
       "total of the past has shape [2, 4, 4, 5]"},
      {[&] {
         with({at::ones({2, 4, 5}, at::kLong), {}});
       },
       "previous has dtype Long"},
      {[&] {
         Score("location_sensitive", {{"v", v}, {"U", u}, {"F", at::ones({3, 4})}});
       },
       "parameter F has filter_width 4; it must be odd"},
      {[&] {
         Score("location_sensitive", {{"v", v}, {"U", u}, {"F", at::ones({2, 3})}});
       },
       "parameter F has filters 2, parameter U 3; they must match"},
      {[&] {
         Score("coverage", {{"v", v}});
       },
       "parameter w_c is missing"},
      {[&] {
         Score("linear", {{"w_q", v}});
       },
       "parameter w_k is missing"},
      {[&] {
         attention(p.query, p.key, p.value,
                   {.score = p.score, .normaliser = "monotonic", .path = Path::fused});
       },
       "no kernel supports normaliser monotonic"},
  });
}

}  // namespace past_test
}  // namespace attend::reference
