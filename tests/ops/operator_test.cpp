// Tests of attention() against scalar loops: every score and scope, odd sizes, all dtypes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/reference.h"

namespace attend::reference {
namespace operator_test {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Tolerances {
  double scores, weights, context, lse;
};

// Rounding errors of a result, with unit round-off u. A score is a sum of at most `terms` products.
// The error of a weight is twice the error of its scores. The context adds Tk products.
Tolerances tolerances(const Problem& problem, const Expected& expected, double u, double stored_u) {
  const auto depths = problem.query.size(3) + problem.key.size(3);
  const auto keys = static_cast<double>(problem.key.size(2));
  const double scores = u * static_cast<double>(2 * depths + 16) * (1 + expected.score_terms);
  const double weights = 4 * scores + (keys + 8) * u;
  const double largest =
      problem.value.numel() == 0 ? 0.0 : problem.value.abs().max().to(at::kDouble).item<double>();
  return {scores, weights + stored_u, (weights + keys * u + stored_u) * (largest + 1),
          2 * scores + (keys + 8) * u};
}

// The largest difference; infinities must match, and NaN always fails.
double difference(const Tensor& got, const Tensor& wanted) {
  if (got.sizes() != wanted.sizes()) return infinity;
  if (got.numel() == 0) return 0;
  const Tensor g = got.to(at::kDouble);
  const Tensor gap = at::where(g == wanted, at::zeros_like(wanted), (g - wanted).abs());
  return gap.isnan().any().item<bool>() ? infinity : gap.max().item<double>();
}

void expect_loops(const Problem& problem, const ScopeCase& scope, at::ScalarType dtype) {
  const Expected expected = attend_by_loops(problem, scope);
  if (!expected.scores.defined()) return;
  // float16 and bfloat16 are storage types; the arithmetic is float32.
  const double u = (dtype == at::kDouble ? std::numeric_limits<double>::epsilon()
                                         : std::numeric_limits<float>::epsilon()) /
                   2;
  const double stored_u = dtype == at::kBFloat16 ? 0x1p-8 : dtype == at::kHalf ? 0x1p-11 : 0;
  const Tolerances tolerance = tolerances(problem, expected, u, stored_u);
  for (const Path path : paths_of(problem, {.score = problem.score, .scope = scope.scope})) {
    SCOPED_TRACE(path == Path::fused ? "fused" : "composed");
    const AttentionSpec spec = {.score = problem.score, .scope = scope.scope, .path = path};
    const auto result = attention(problem.query, problem.key, problem.value, spec);
    const Tensor scores = attention_scores(problem.query, problem.key, spec);
    const Tensor weights = attention_weights(problem.query, problem.key, result.lse, spec);
    EXPECT_EQ(result.context.scalar_type(), dtype);
    EXPECT_EQ(result.lse.scalar_type(), dtype == at::kDouble ? at::kDouble : at::kFloat);
    EXPECT_LE(difference(scores, expected.scores), tolerance.scores);
    EXPECT_LE(difference(weights, expected.weights), tolerance.weights);
    EXPECT_LE(difference(result.context, expected.context), tolerance.context);
    EXPECT_LE(difference(result.lse, expected.lse), tolerance.lse);
  }
}

void expect_loops_for_every_scope(const ScoreRow& row, const Sizes& sizes, Given given,
                                  bool parameter_heads, at::ScalarType dtype = at::kDouble) {
  const Problem problem = make_problem(row, sizes, given, parameter_heads, dtype, 7);
  for (const ScopeCase& scope : scope_cases(sizes)) {
    SCOPED_TRACE(fmt::format("{} over {}, queries {}, keys {}, all parameters {}, of heads {}",
                             row.name, scope.name, sizes.queries, sizes.keys, given == Given::all,
                             parameter_heads));
    expect_loops(problem, scope, dtype);
  }
}

class OperatorOfScore : public testing::TestWithParam<ScoreRow> {};

TEST_P(OperatorOfScore, MatchesTheLoops) {
  const Sizes grouped = {.batch = 3, .heads = 4, .key_heads = 2};
  for (const Given given : {Given::all, Given::required}) {
    for (const bool parameter_heads : {false, true})
      expect_loops_for_every_scope(GetParam(), grouped, given, parameter_heads);
  }
}

TEST_P(OperatorOfScore, MatchesTheLoopsForOddSizes) {
  for (const auto& [queries, keys] :
       {std::pair{1, 1}, {1, 2}, {3, 1}, {2, 17}, {17, 3}, {59, 17}, {17, 111}}) {
    const Sizes sizes = {.batch = 1,
                         .heads = 1,
                         .key_heads = 1,
                         .queries = queries,
                         .keys = keys,
                         .query_depth = 3,
                         .key_depth = 1,
                         .attention_depth = 2,
                         .value_depth = 17};
    expect_loops_for_every_scope(GetParam(), sizes, Given::all, false);
  }
  const Sizes deep = {.queries = 2,
                      .keys = 3,
                      .query_depth = 59,
                      .key_depth = 111,
                      .attention_depth = 17,
                      .value_depth = 1};
  expect_loops_for_every_scope(GetParam(), deep, Given::all, true);
  expect_loops_for_every_scope(GetParam(), deep, Given::required, false);
}

TEST_P(OperatorOfScore, MatchesTheLoopsWithoutKeysQueriesOrBatch) {
  for (const Sizes& sizes : {Sizes{.batch = 2, .keys = 0}, Sizes{.batch = 2, .queries = 0},
                             Sizes{.batch = 0}, Sizes{.batch = 2, .value_depth = 0}}) {
    for (const Given given : {Given::all, Given::required}) {
      expect_loops_for_every_scope(GetParam(), sizes, given, false);
      expect_loops_for_every_scope(GetParam(), sizes, given, true);
    }
  }
}

TEST_P(OperatorOfScore, MatchesTheLoopsInEveryDtype) {
  const Sizes sizes = {.batch = 2, .heads = 2, .queries = 5, .keys = 7};
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    expect_loops_for_every_scope(GetParam(), sizes, Given::all, false, dtype);
    expect_loops_for_every_scope(GetParam(), sizes, Given::all, true, dtype);
    expect_loops_for_every_scope(GetParam(), sizes, Given::required, false, dtype);
  }
}

TEST_P(OperatorOfScore, TakesInputsOfTwoAndThreeAxes) {
  const Sizes sizes = {.batch = 2};
  const Problem problem = make_problem(GetParam(), sizes, Given::all, false, at::kDouble, 3);
  for (const ScopeCase& scope : scope_cases(sizes, 3)) {
    SCOPED_TRACE(scope.name);
    const Expected expected = attend_by_loops(problem, scope);
    if (!expected.scores.defined()) return;
    const Tolerances tolerance = tolerances(problem, expected, 0x1p-53, 0);
    AttentionSpec spec = {.score = problem.score, .scope = scope.scope};
    const Tensor q = problem.query.squeeze(1), k = problem.key.squeeze(1),
                 v = problem.value.squeeze(1);
    const auto three = attention(q, k, v, spec);
    EXPECT_LE(difference(three.context, expected.context.squeeze(1)), tolerance.context);
    EXPECT_LE(difference(three.lse, expected.lse.squeeze(1)), tolerance.lse);
    EXPECT_LE(difference(attention_weights(q, k, three.lse, spec), expected.weights.squeeze(1)),
              tolerance.weights);
    spec.scope = of_head(with_four_axes(spec.scope, 3), 1, 0);
    const auto two = attention(q[1], k[1], v[1], spec);
    EXPECT_LE(difference(two.context, expected.context[1][0]), tolerance.context);
    EXPECT_LE(difference(two.lse, expected.lse[1][0]), tolerance.lse);
    EXPECT_LE(difference(attention_scores(q[1], k[1], spec), expected.scores[1][0]),
              tolerance.scores);
  }
}

// The same numbers with the last two axes transposed in memory.
Tensor transposed_storage(const Tensor& x) {
  return x.dim() < 2 ? x : x.transpose(-2, -1).contiguous().transpose(-2, -1);
}

TEST_P(OperatorOfScore, TakesInputsThatAreNotContiguous) {
  const Sizes sizes = {.batch = 3, .heads = 4, .key_heads = 2};
  Problem problem = make_problem(GetParam(), sizes, Given::all, true, at::kDouble, 11);
  Parameters parameters;
  for (const auto& [name, tensor] : problem.score.parameters())
    parameters.emplace(name, transposed_storage(tensor));
  problem = {transposed_storage(problem.query), transposed_storage(problem.key),
             transposed_storage(problem.value), Score(GetParam().name, parameters)};
  EXPECT_FALSE(problem.query.is_contiguous());
  for (const ScopeCase& scope : scope_cases(sizes)) expect_loops(problem, scope, at::kDouble);
}

TEST_P(OperatorOfScore, MappedInputsScoreTheSame) {
  const Sizes sizes = {.batch = 3, .heads = 2, .key_heads = 2};
  for (const bool parameter_heads : {false, true}) {
    const Problem problem =
        make_problem(GetParam(), sizes, Given::all, parameter_heads, at::kDouble, 5);
    const Score& score = problem.score;
    const Score mapped = score.mapped();
    for (const ScopeCase& scope : scope_cases(sizes)) {
      const auto direct = attention(problem.query, problem.key, problem.value,
                                    {.score = score, .scope = scope.scope, .path = Path::composed});
      const auto result =
          attention(score.map_query(problem.query), score.map_key(problem.key), problem.value,
                    {.score = mapped, .scope = scope.scope, .path = Path::composed});
      EXPECT_TRUE(at::equal(direct.context, result.context)) << scope.name;
      EXPECT_TRUE(at::equal(direct.lse, result.lse)) << scope.name;
    }
    EXPECT_TRUE(at::equal(mapped.map_query(score.map_query(problem.query)),
                          score.map_query(problem.query)));
    EXPECT_TRUE(at::equal(mapped.map_key(score.map_key(problem.key)), score.map_key(problem.key)));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, OperatorOfScore, testing::ValuesIn(score_table()),
                         [](const auto& info) { return test_name(std::string(info.param.name)); });

TEST(Operator, HasAScaledDotProductByDefault) {
  const Problem problem =
      make_problem(score_row("scaled_dot"), {}, Given::all, false, at::kDouble, 2);
  const auto result = attention(problem.query, problem.key, problem.value);
  const Expected expected = attend_by_loops(problem, scope_cases({})[0]);
  EXPECT_LE(difference(result.context, expected.context),
            tolerances(problem, expected, 0x1p-53, 0).context);
}

TEST(Operator, LeavesHugeScoresFinite) {
  // exp(1e5) overflows float64, too: only the largest key may have weight.
  const Tensor query = at::full({1, 1}, 1e5, at::kDouble);
  const Tensor key = at::tensor({-1.0, 0.5, 1.0}, at::kDouble).view({3, 1});
  for (const Path path : {Path::composed, Path::fused}) {
    const auto result =
        attention(query, key, at::eye(3, at::kDouble), {.score = "dot", .path = path});
    EXPECT_TRUE(at::equal(result.context, at::tensor({0.0, 0.0, 1.0}, at::kDouble).view({1, 3})));
    // Conversion to base 2 and back: two roundings.
    EXPECT_NEAR(result.lse.item<double>(), 1e5, path == Path::composed ? 0 : 2 * 0x1p-53 * 1e5);
  }
}

TEST(Operator, CosineKeepsItsPrecisionAtAnyLength) {
  const Tensor query = at::tensor({3.0F, 4.0F}).view({1, 2});
  const Tensor key = at::tensor({1.0F, 0.0F, 0.0F, -1.0F}).view({2, 2});
  const Tensor expected = at::tensor({0.6F, -0.8F}).view({1, 2});
  for (const double length : {1e-30, 1e-10, 1.0, 1e30}) {
    const Tensor scores = attention_scores(query * length, key / length, {.score = "cosine"});
    // Two normalisations with a few roundings each, and one product.
    EXPECT_LE((scores - expected).abs().max().item<double>(), 16 * 0x1p-24) << length;
  }
  const Tensor zero = attention_scores(at::zeros({1, 2}), key, {.score = "cosine"});
  EXPECT_TRUE(at::equal(zero, at::zeros({1, 2})));
}

TEST(Operator, ScoresAreTheCallersToChange) {
  const Tensor query = at::ones({2, 3});
  attention_scores(query, at::ones({3, 1}), {.score = "location"}).zero_();
  EXPECT_TRUE(at::equal(query, at::ones({2, 3})));
}

}  // namespace operator_test
}  // namespace attend::reference
