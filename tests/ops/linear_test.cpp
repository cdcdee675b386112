// Tests of linear attention: running sums against scalar loops and the composed path, steps against
// all at once, and random features against the exponential that they estimate.
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "attend/ops/linear_state.h"
#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace linear_test {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

// A problem with nonnegative scores: dot gets nonnegative features.
Problem positive_problem(std::string_view score, const Sizes& sizes, uint64_t seed,
                         at::ScalarType dtype = at::kDouble) {
  Problem problem = make_problem(score_row(score), sizes, Given::all, false, dtype, seed);
  if (score != "dot") return problem;
  problem.query = problem.query.square();
  problem.key = problem.key.square();
  return problem;
}

AttentionSpec linear_spec(const Problem& problem, const Scope& scope, Path path = Path::automatic) {
  return {.score = problem.score, .scope = scope, .normaliser = "linear", .path = path};
}

AttentionResult attend_to(const Problem& p, const Scope& scope, Path path) {
  return attention(p.query, p.key, p.value, linear_spec(p, scope, path));
}

// w_ij = s_ij / sum_j s_ij by loops over the expected scores.
Expected divide_by_loops(const Problem& problem, const ScopeCase& scope) {
  Expected expected = attend_by_loops(problem, scope);
  const auto sizes = expected.scores.sizes();
  const int64_t group = sizes[1] / problem.value.size(1);
  expected.context.zero_();
  const auto scores = expected.scores.accessor<double, 4>();
  auto weights = expected.weights.accessor<double, 4>();
  auto context = expected.context.accessor<double, 4>();
  auto lse = expected.lse.accessor<double, 3>();
  const Tensor values = problem.value.to(at::kDouble);
  const auto value = values.accessor<double, 4>();
  for (int64_t b = 0; b < sizes[0]; ++b)
    for (int64_t h = 0; h < sizes[1]; ++h)
      for (int64_t i = 0; i < sizes[2]; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < sizes[3]; ++j)
          if (scope.allows(b, h, i, j)) sum += scores[b][h][i][j];
        lse[b][h][i] = sum == 0 ? -infinity : std::log(sum);
        for (int64_t j = 0; j < sizes[3]; ++j) {
          weights[b][h][i][j] = scope.allows(b, h, i, j) ? scores[b][h][i][j] / sum : 0;
          for (int64_t d = 0; d < value.size(3); ++d)
            context[b][h][i][d] += weights[b][h][i][j] * value[b][h / group][j][d];
        }
      }
  return expected;
}

// The scopes of all scores, and scopes of special interest for running sums.
std::vector<ScopeCase> running_scope_cases(const Sizes& sizes) {
  std::vector<ScopeCase> cases = scope_cases(sizes);
  using N = int64_t;
  for (const N offset : {N{1}, N{5}, sizes.keys - sizes.queries, N{-130}, N{130}, sizes.keys}) {
    cases.push_back({fmt::format("causal_{}", offset), causal(offset),
                     [=](N, N, N i, N j) { return j <= i + offset; }});
  }
  const N length = std::min<N>(sizes.keys, 3);
  cases.push_back({"causal_prefix", causal(1) & prefix(length) & causal(2),
                   [=](N, N, N i, N j) { return j <= i + 1 && j < length; }});
  const Tensor kept = at::arange(sizes.keys).remainder(3) != 0;
  const Tensor of_batch = at::arange(sizes.batch).view({-1, 1, 1, 1}) != 1;
  cases.push_back({"causal_mask_of_keys", causal() & dense_mask(kept) & dense_mask(of_batch),
                   [](N b, N, N i, N j) { return j <= i && j % 3 != 0 && b != 1; }});
  return cases;
}

// A ratio of sums of `terms` positive numbers has a relative error of u per term; scores have the
// terms of their loops.
double room(const Problem& problem, double u) {
  const auto terms = static_cast<double>(problem.key.size(2) +
                                         4 * problem.query.size(3) * problem.query.size(3) + 64);
  return 8 * u * terms;
}

bool near(const Tensor& got, const Tensor& wanted, double tolerance) {
  return got.sizes() == wanted.sizes() &&
         at::allclose(got.to(at::kDouble), wanted.to(at::kDouble), tolerance, tolerance);
}

class LinearScore : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Table, LinearScore,
                         testing::Values("dot", "elu_features", "positive_features"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(LinearScore, MatchesTheLoops) {
  for (const auto& [queries, keys] : {std::pair{1, 1}, {3, 1}, {1, 59}, {59, 111}, {259, 131}}) {
    const Sizes sizes = {.batch = 2,
                         .heads = 2,
                         .key_heads = 1,
                         .queries = queries,
                         .keys = keys,
                         .query_depth = 3,
                         .key_depth = 3,
                         .attention_depth = 5,
                         .value_depth = 2};
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      const Problem problem = positive_problem(GetParam(), sizes, 3, dtype);
      const double u = dtype == at::kDouble ? 0x1p-53 : 0x1p-24;
      for (const ScopeCase& scope : running_scope_cases(sizes)) {
        const bool causal_name = scope.name.starts_with("causal");
        // Only causal scopes have several chunks.
        if (!causal_name && (dtype == at::kFloat || queries > 128)) continue;
        SCOPED_TRACE(fmt::format("{}, {} queries, {} keys", scope.name, queries, keys));
        const Expected wanted = divide_by_loops(problem, scope);
        for (const Path path : paths_of(problem, linear_spec(problem, scope.scope))) {
          const auto result = attend_to(problem, scope.scope, path);
          EXPECT_TRUE(near(result.context, wanted.context, room(problem, u)));
          EXPECT_TRUE(near(result.lse, wanted.lse, room(problem, u)));
          const AttentionSpec spec = linear_spec(problem, scope.scope);
          EXPECT_TRUE(near(attention_weights(problem.query, problem.key, result.lse, spec),
                           wanted.weights, room(problem, u)));
          EXPECT_TRUE(near(attention_scores(problem.query, problem.key, spec), wanted.scores,
                           room(problem, u)));
        }
      }
    }
  }
}

TEST_P(LinearScore, TakesRunningSumsWhereItCan) {
  const Sizes sizes = {.batch = 3, .queries = 7, .keys = 7};
  const Problem problem = positive_problem(GetParam(), sizes, 4);
  size_t running = 0;
  for (const ScopeCase& scope : running_scope_cases(sizes)) {
    const bool expected =
        scope.name == "all" || scope.name == "past" || scope.name == "key_lengths" ||
        (scope.name.starts_with("causal") && scope.name.find("blocks") == std::string::npos);
    EXPECT_EQ(paths_of(problem, linear_spec(problem, scope.scope)).size() == 2, expected)
        << scope.name;
    running += expected ? 1 : 0;
  }
  EXPECT_GT(running, 8U);
}

TEST_P(LinearScore, HasFirstAndSecondDerivatives) {
  const Sizes sizes = {.batch = 2,
                       .heads = 2,
                       .key_heads = 1,
                       .queries = 4,
                       .keys = 3,
                       .query_depth = 2,
                       .key_depth = 2,
                       .attention_depth = 3,
                       .value_depth = 2};
  const Problem problem = positive_problem(GetParam(), sizes, 5);
  Tensors inputs = {problem.query, problem.key, problem.value};
  std::vector<std::string> names = {"query", "key", "value"};
  for (const auto& [name, tensor] : problem.score.parameters()) {
    names.push_back(name);
    inputs.push_back(tensor);
  }
  const Tensor upstream = at::randn({2, 2, 4, 2}, at::kDouble);
  for (const Scope& scope :
       {all_keys(), causal(), causal(1), causal(-2), key_lengths(at::tensor({0, 2}, at::kLong)),
        causal() & key_lengths(at::tensor({1, 3}, at::kLong))}) {
    for (const Path path : {Path::composed, Path::fused}) {
      const Function function = [&](const Tensors& x) {
        Parameters parameters;
        for (size_t i = 3; i < x.size(); ++i) parameters.emplace(names[i], x[i]);
        const auto result = attention(x[0], x[1], x[2],
                                      {.score = Score(GetParam(), parameters),
                                       .scope = scope,
                                       .normaliser = "linear",
                                       .path = path});
        const Tensor lse = result.lse.masked_fill(result.lse == -infinity, 0.0);
        return (result.context * upstream).sum() + lse.square().sum();
      };
      expect_gradients(function, inputs, names);
      expect_second_gradients(function, inputs, names);
    }
  }
}

// Both halves of the function have derivative 1 at 0; a clamp would have any.
TEST(EluFeatures, HaveDerivativeOneAtZero) {
  const Tensors x = leaves({at::zeros({3}, at::kDouble)});
  const Tensor features = score_row("elu_features").map_query(x[0], {});
  EXPECT_TRUE(at::equal(gradients(features.sum(), x, false)[0], at::ones_like(x[0])));
}

// Over several chunks; differences would be expensive.
TEST_P(LinearScore, HasTheGradientsOfTheComposedPath) {
  const Sizes sizes = {.heads = 4, .key_heads = 2, .queries = 291, .keys = 300, .query_depth = 3};
  const Problem problem = positive_problem(GetParam(), sizes, 6);
  for (const Scope& scope : {all_keys(), causal(), causal(9), causal(-20)}) {
    const auto gradients_on = [&](Path path) {
      const Tensors x = leaves({problem.query, problem.key, problem.value});
      const auto [context, lse] = attention(x[0], x[1], x[2], linear_spec(problem, scope, path));
      const Tensor finite = lse.masked_fill(lse == -infinity, 0.0);
      return gradients((context * context).sum() + finite.sum(), x, false);
    };
    const Tensors fused = gradients_on(Path::fused), composed = gradients_on(Path::composed);
    for (size_t i = 0; i < fused.size(); ++i)
      EXPECT_TRUE(near(fused[i], composed[i], 100 * room(problem, 0x1p-53)));
  }
}

TEST_P(LinearScore, StepByStepIsCausalAttention) {
  const Sizes sizes = {.batch = 2,
                       .heads = 4,
                       .key_heads = 2,
                       .queries = 9,
                       .keys = 9,
                       .query_depth = 3,
                       .key_depth = 3};
  Problem problem = positive_problem(GetParam(), sizes, 7);
  // Later keys have larger features, then smaller ones: the state's scale changes or stays.
  if (GetParam() != std::string_view("dot")) problem.key.narrow(2, 3, 2).mul_(3);
  const auto whole = attend_to(problem, causal(), Path::composed);
  LinearState state;
  for (int64_t t = 0; t < 9;) {
    const int64_t count = t == 0 ? 4 : 1;
    const auto part = [&](const Tensor& x) { return x.narrow(2, t, count); };
    const auto result =
        state.step(part(problem.query), part(problem.key), part(problem.value), problem.score);
    EXPECT_TRUE(near(result.context, part(whole.context), room(problem, 0x1p-53)));
    EXPECT_TRUE(near(result.lse, part(whole.lse), room(problem, 0x1p-53)));
    t += count;
  }
  const std::vector<int64_t> shape = {2, 2, problem.score.map_key(problem.key).size(3), 3};
  EXPECT_EQ(state.sums.sizes(), at::IntArrayRef(shape));
}

TEST_P(LinearScore, DoesNotSeeLaterKeys) {
  const Sizes sizes = {.queries = 150, .keys = 150, .query_depth = 3, .key_depth = 3};
  Problem problem = positive_problem(GetParam(), sizes, 8);
  const auto before = attend_to(problem, causal(), Path::fused);
  problem.key.narrow(2, 140, 10).fill_(0.01);
  problem.value.narrow(2, 140, 10).fill_(100);
  const auto after = attend_to(problem, causal(), Path::fused);
  const auto early = [](const Tensor& x) { return x.narrow(2, 0, 140); };
  EXPECT_TRUE(near(early(after.context), early(before.context), room(problem, 0x1p-53)));
  EXPECT_TRUE(near(early(after.lse), early(before.lse), room(problem, 0x1p-53)));
  EXPECT_FALSE(near(after.context, before.context, 1e-3));
}

TEST_P(LinearScore, GivesRowsWithoutKeysNothing) {
  const Sizes sizes = {.batch = 2, .queries = 140, .keys = 140, .query_depth = 2, .key_depth = 2};
  const Problem problem = positive_problem(GetParam(), sizes, 9);
  for (const Scope& scope : {causal(-140), causal() & key_lengths(at::zeros({2}, at::kLong)),
                             key_lengths(at::zeros({2}, at::kLong))}) {
    const Tensors x = leaves({problem.query, problem.key, problem.value});
    const auto [context, lse] = attention(x[0], x[1], x[2], linear_spec(problem, scope));
    EXPECT_TRUE(at::equal(context, at::zeros_like(context)));
    EXPECT_TRUE((lse == -infinity).all().item<bool>());
    for (const Tensor& gradient : gradients(context.sum(), x, false))
      EXPECT_TRUE(at::equal(gradient, at::zeros_like(gradient)));
  }
  for (const Sizes& empty : {Sizes{.keys = 0}, Sizes{.queries = 0}, Sizes{.batch = 0}}) {
    const Problem nothing = positive_problem(GetParam(), empty, 10);
    for (const Scope& scope : {all_keys(), causal(), causal(3)}) {
      const auto result = attend_to(nothing, scope, Path::fused);
      EXPECT_TRUE(at::equal(result.context, at::zeros_like(result.context)));
    }
  }
}

// The weights of 100,000 queries and keys in float32 would take 40 GB.
TEST_P(LinearScore, HoldsNoWeights) {
  const int64_t length = 100'000;
  const Sizes sizes = {.queries = length,
                       .keys = length,
                       .query_depth = 2,
                       .key_depth = 2,
                       .attention_depth = 2,
                       .value_depth = 1};
  const Problem problem = positive_problem(GetParam(), sizes, 11, at::kFloat);
  const Tensors x = leaves({problem.query, problem.key, problem.value});
  const auto result = attention(x[0], x[1], x[2], linear_spec(problem, causal(), Path::fused));
  for (const Tensor& gradient : gradients(result.context.square().sum(), x, false))
    EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  // The last query sees all keys.
  const auto last = attention(problem.query.narrow(2, length - 1, 1), problem.key, problem.value,
                              linear_spec(problem, all_keys(), Path::composed));
  EXPECT_TRUE(near(result.context.narrow(2, length - 1, 1), last.context, 1e-3));
}

TEST_P(LinearScore, StoresSixteenBitsAndComputesInMore) {
  const Sizes sizes = {.heads = 2, .queries = 140, .keys = 140, .query_depth = 3, .key_depth = 3};
  const Problem problem = positive_problem(GetParam(), sizes, 12, at::kBFloat16);
  const ScopeCase scope = {"causal", causal(),
                           [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; }};
  const Expected wanted = divide_by_loops(problem, scope);
  const auto result = attend_to(problem, causal(), Path::fused);
  EXPECT_EQ(result.context.scalar_type(), at::kBFloat16);
  EXPECT_EQ(result.lse.scalar_type(), at::kFloat);
  EXPECT_TRUE(near(result.lse, wanted.lse, room(problem, 0x1p-24)));
  EXPECT_TRUE(near(result.context, wanted.context, 0x1p-8 + room(problem, 0x1p-24)));
}

// Scores below the smallest float32, for which the plain formula is 0 / 0.
TEST(PositiveFeatures, StayFiniteForLargeInputs) {
  const Sizes sizes = {.batch = 2, .queries = 5, .keys = 6, .query_depth = 4, .key_depth = 4};
  Problem problem = positive_problem("positive_features", sizes, 13);
  problem.query = problem.query * 10;
  problem.key = problem.key * 10;
  // A zero key has the largest features of all, in scope or not.
  problem.key.select(2, 5).zero_();
  const Scope scope = key_lengths(at::tensor({5, 3}, at::kLong));
  const auto in_double = attend_to(problem, scope, Path::composed);
  ASSERT_TRUE(in_double.lse.isfinite().all().item<bool>());
  EXPECT_LT(in_double.lse.min().item<double>(), -104);
  Problem single = problem;
  single.query = problem.query.to(at::kFloat);
  single.key = problem.key.to(at::kFloat);
  single.value = problem.value.to(at::kFloat);
  single.score = Score("positive_features",
                       {{"omega", problem.score.parameters().at("omega").to(at::kFloat)}});
  for (const Path path : {Path::composed, Path::fused}) {
    const Tensors x = leaves({single.query, single.key, single.value});
    const auto [context, lse] = attention(x[0], x[1], x[2], linear_spec(single, scope, path));
    // Exponents of some hundreds, sums with several roundings, have relative errors of 2^-24.
    const double tolerance = 16 * 0x1p-24 * in_double.lse.abs().max().item<double>();
    EXPECT_TRUE(at::allclose(lse.to(at::kDouble), in_double.lse, tolerance, 0));
    EXPECT_TRUE(near(context, in_double.context, 8 * tolerance));
    for (const Tensor& gradient : gradients(context.sum() + lse.sum(), x, false))
      EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  }
}

// The mean over draws of independent normal directions is exp(q . k / sqrt(D)), within four
// standard errors estimated from the draws.
TEST(PositiveFeatures, AreUnbiased) {
  auto generator = at::detail::createCPUGenerator(14);
  constexpr int64_t draws = 20'000, depth = 3, features = 4;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  // The variance of estimates grows as exp(|q + k|^2), so that inputs are small.
  const Tensor query = at::randn({1, 1, 1, depth}, generator, options) / 2;
  const Tensor key = at::randn({1, 1, 4, depth}, generator, options) / 2;
  const Tensor omega = at::randn({draws, features, depth}, generator, options);
  const Tensor scores =
      attention_scores(query.expand({1, draws, 1, depth}), key.expand({1, draws, 4, depth}),
                       {.score = Score("positive_features", {{"omega", omega}})});
  const Tensor wanted = (at::matmul(query, key.transpose(2, 3)) / std::sqrt(3.0)).exp();
  const Tensor error = (scores.mean(1) - wanted.select(1, 0)).abs();
  const Tensor allowed = 4 * scores.std(1) / std::sqrt(static_cast<double>(draws));
  EXPECT_TRUE((error <= allowed).all().item<bool>()) << error << allowed;
  EXPECT_TRUE((allowed < 0.2 * wanted.select(1, 0)).all().item<bool>())
      << "too few draws for a verdict";
}

TEST(Linear, SoftCapAndDropoutTakeTheComposedPath) {
  const Problem problem = positive_problem("positive_features", {.query_depth = 3}, 15);
  AttentionSpec spec = linear_spec(problem, all_keys());
  spec.soft_cap = 2;
  const Tensor scores = attention_scores(problem.query, problem.key, spec);
  const auto capped = attention(problem.query, problem.key, problem.value, spec);
  const Tensor weights = scores / scores.sum(-1, true);
  EXPECT_TRUE(at::allclose(capped.context, at::matmul(weights, problem.value)));
  EXPECT_TRUE(at::allclose(capped.lse, scores.sum(-1).log()));
  const Tensor plain =
      attention_scores(problem.query, problem.key, linear_spec(problem, all_keys()));
  EXPECT_TRUE(at::allclose(scores, 2 * (plain / 2).tanh()));
}

TEST(Linear, SaysWhatItDoesNotTake) {
  const Tensor x = at::ones({1, 4, 6, 3});
  const auto attend_with = [&](AttentionSpec spec) {
    spec.normaliser = "linear";
    attention(x, x, x, spec);
  };
  const Tensor lse = at::zeros({1, 4, 6});
  const Tensor omega = at::ones({5, 3});
  LinearState started;
  started.step(x, x, x, "elu_features");
  const auto step = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    started.step(q, k, v, "elu_features");
  };
  expect_errors({
      {[&] { attend_with({}); },
       "normaliser linear divides by the sum of the scores, and scores of scaled_dot may be "
       "negative; take elu_features"},
      {[&] { attend_with({.score = "elu_features", .bias = alibi(at::ones({4}))}); },
       "which a bias could make negative; leave the bias out"},
      {[&] { attend_with({.score = "elu_features", .sink = at::ones({4})}); },
       "the sink takes part in a softmax; the normaliser is linear"},
      {[&] { attend_with({.score = "elu_features", .scope = window(2), .path = Path::fused}); },
       "path is fused, but running sums follow the scopes all and causal"},
      {[&] { attend_with({.score = "dot", .soft_cap = 1, .path = Path::fused}); },
       "path is fused, but running sums hold no single scores, and soft_cap changes these"},
      {[&] {
         attend_with({.score = "dot", .dropout = {0.5, 1}, .path = Path::fused});
       },
       "path is fused, but running sums hold no single weight to drop"},
      {[&] {
         attention_weights(x, x, lse,
                           {.score = "elu_features", .normaliser = "linear", .path = Path::fused});
       },
       "path is fused, but linear attention never forms its weights; take automatic or composed"},
      {[&] { attend_with({.score = Score("positive_features")}); },
       "parameter omega is missing; it is a random direction for each of m features"},
      {[&] {
         attend_with({.score = Score("positive_features", {{"omega", at::ones({5, 2})}})});
       },
       "queries have depth 3, parameter omega of score positive_features expects 2"},
      {[&] {
         attention(x, at::ones({1, 4, 6, 2}), x,
                   {.score = Score("positive_features", {{"omega", omega}})});
       },
       "parameter omega of score positive_features has shape [5, 3]; it must have 1 or more rows "
       "as long as the queries and keys are deep, 2"},
      {[&] {
         attend_with({.score = Score("positive_features", {{"omega", at::ones({0, 3})}})});
       },
       "parameter omega of score positive_features has shape [0, 3]"},
      {[&] { step(x, x, {}); }, "[linear attention] value is undefined"},
      {[&] { step(x, x.narrow(2, 0, 2), x.narrow(2, 0, 2)); },
       "a step has 6 queries and 2 keys; it must have one or more, the same number of both"},
      {[&] {
         step(x, x, at::ones({1, 4, 6, 2}));
       },
       "the sums so far have shape [1, 4, 3, 4], the sums of this step [1, 4, 3, 3]"},
  });
}

}  // namespace linear_test
}  // namespace attend::reference
