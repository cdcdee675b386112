// Tests of first and second derivatives of attention() against central differences, for every row
// of the score table and every scope.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/ops/differences.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace gradients_test {

using at::Tensor;

// A problem as a list of tensors: query, key, value and the parameters by name. Then the weights of
// context and lse in the scalar that is differentiated.
struct Differentiated {
  Problem problem;
  Scope scope;
  Path path;
  std::vector<std::string> names;
  Tensors inputs;

  Differentiated(const Problem& made, const Scope& in_scope, uint64_t seed,
                 Path taken = Path::automatic)
      : problem(made),
        scope(in_scope),
        path(taken),
        names{"query", "key", "value"},
        inputs{made.query, made.key, made.value} {
    for (const auto& [name, tensor] : made.score.parameters()) {
      names.push_back(name);
      inputs.push_back(tensor);
    }
    torch::manual_seed(seed);
    const auto sizes = made.query.sizes();
    const auto options = at::TensorOptions().dtype(at::kDouble);
    names.insert(names.end(), {"gradient of context", "gradient of lse"});
    inputs.push_back(at::randn({sizes[0], sizes[1], sizes[2], made.value.size(3)}, options));
    inputs.push_back(at::randn({sizes[0], sizes[1], sizes[2]}, options));
  }

  Tensor operator()(const Tensors& x) const {
    Parameters parameters;
    for (size_t i = 3; i + 2 < x.size(); ++i) parameters.emplace(names[i], x[i]);
    const Score score(problem.score.row().name, parameters);
    const auto result = attention(x[0], x[1], x[2], {.score = score, .scope = scope, .path = path});
    const Tensor lse = result.lse.masked_fill(result.lse.isinf(), 0.0);
    return (result.context * x[x.size() - 2]).sum() + (lse * x[x.size() - 1]).sum();
  }
};

class GradientsOfScore : public testing::TestWithParam<ScoreRow> {
 protected:
  static constexpr Sizes sizes = {.batch = 2,
                                  .heads = 2,
                                  .key_heads = 1,
                                  .queries = 2,
                                  .keys = 3,
                                  .query_depth = 2,
                                  .key_depth = 2,
                                  .attention_depth = 2,
                                  .value_depth = 1};
};

TEST_P(GradientsOfScore, MatchCentralDifferences) {
  for (const bool parameter_heads : {false, true}) {
    const Problem problem =
        make_problem(GetParam(), sizes, Given::all, parameter_heads, at::kDouble, 21);
    for (const ScopeCase& scope : scope_cases(sizes)) {
      for (const Path path : {Path::automatic, Path::composed}) {
        SCOPED_TRACE(fmt::format("{}, parameters of heads {}{}", scope.name, parameter_heads,
                                 path == Path::composed ? ", composed" : ""));
        const Differentiated function(problem, scope.scope, 22, path);
        expect_gradients(function, function.inputs, function.names);
      }
    }
    if (GetParam().parameters.empty()) break;
  }
}

// Second derivatives are compared with differences of a random combination of the first ones.
TEST_P(GradientsOfScore, AreDifferentiableAgain) {
  const Problem problem = make_problem(GetParam(), sizes, Given::all, false, at::kDouble, 31);
  for (const ScopeCase& scope : scope_cases(sizes)) {
    SCOPED_TRACE(scope.name);
    const Differentiated function(problem, scope.scope, 32);
    expect_second_gradients(function, function.inputs, function.names);
  }
}

TEST_P(GradientsOfScore, OfRowsWithoutKeysAreZero) {
  // With anomaly detection a NaN in any backward step throws.
  torch::autograd::AnomalyMode::set_enabled(true, true);
  const Problem problem = make_problem(GetParam(), sizes, Given::all, true, at::kDouble, 41);
  const Tensor nothing = at::zeros({sizes.queries, sizes.keys}, at::kBool);
  for (const Scope& scope : {dense_mask(nothing), dense_mask(at::zeros({}, at::kBool)),
                             key_lengths(at::zeros({2}, at::kLong))}) {
    const auto result = attention(problem.query, problem.key, problem.value,
                                  {.score = problem.score, .scope = scope});
    EXPECT_TRUE(at::equal(result.context, at::zeros_like(result.context)));
    EXPECT_TRUE((result.lse == -std::numeric_limits<double>::infinity()).all().item<bool>());
    const Differentiated function(problem, scope, 42);
    const Tensors inputs = leaves(function.inputs);
    const Tensors first = gradients(function(inputs), inputs, true);
    Tensor sum = at::zeros({}, at::kDouble);
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(at::equal(first[i], at::zeros_like(first[i]))) << function.names[i];
      sum = sum + first[i].sum();
    }
    for (const Tensor& second : gradients(sum, inputs, false))
      EXPECT_TRUE(at::equal(second, at::zeros_like(second)));
  }
  torch::autograd::AnomalyMode::set_enabled(false);
}

TEST_P(GradientsOfScore, ExistWithoutKeysQueriesOrBatch) {
  for (Sizes empty :
       {Sizes{.batch = 2, .keys = 0}, Sizes{.batch = 2, .queries = 0}, Sizes{.batch = 0}}) {
    const Problem problem = make_problem(GetParam(), empty, Given::all, false, at::kDouble, 51);
    for (const ScopeCase& scope : scope_cases(empty)) {
      const Differentiated function(problem, scope.scope, 52);
      const Tensors inputs = leaves(function.inputs);
      for (const Tensor& gradient : gradients(function(inputs), inputs, true))
        EXPECT_TRUE(at::equal(gradient, at::zeros_like(gradient)));
    }
  }
}

TEST_P(GradientsOfScore, FlowThroughWeightsOnRequest) {
  const Problem problem = make_problem(GetParam(), sizes, Given::all, false, at::kDouble, 61);
  for (const ScopeCase& scope : scope_cases(sizes)) {
    SCOPED_TRACE(scope.name);
    const Tensors inputs = {problem.query, problem.key};
    const auto function = [&](const Tensors& x) {
      const AttentionSpec spec = {.score = problem.score, .scope = scope.scope};
      const Tensor lse = attention(x[0], x[1], problem.value, spec).lse;
      const Tensor weights = attention_weights(x[0], x[1], lse, spec);
      return (weights * weights * at::arange(weights.numel()).view_as(weights)).sum();
    };
    const Tensors variables = leaves(inputs);
    const Tensors first = gradients(function(variables), variables, false);
    expect_central_differences([&](const Tensors& x) { return function(x).detach(); }, inputs,
                               first, {"query", "key"});
  }
}

INSTANTIATE_TEST_SUITE_P(Table, GradientsOfScore, testing::ValuesIn(score_table()),
                         [](const auto& info) { return test_name(std::string(info.param.name)); });

TEST(Gradients, OfCosineAreFiniteForVectorsOfZeros) {
  const Tensor zeros = at::zeros({2, 3}, at::kDouble).set_requires_grad(true);
  const Tensor key = at::randn({4, 3}, at::kDouble).set_requires_grad(true);
  const Tensors inputs = {zeros, key};
  const Tensor context = attention(zeros, key, key, {.score = "cosine"}).context;
  const Tensors first = gradients(context.square().sum(), inputs, true);
  const Tensors second =
      gradients(first[0].square().sum() + first[1].square().sum(), inputs, false);
  for (const Tensor& derivative : {first[0], first[1], second[0], second[1]})
    EXPECT_TRUE(derivative.isfinite().all().item<bool>());
}

// All options of a call at once: broadcast queries, keys and values, grouped heads, a bias of every
// kind, a soft cap, a temperature, dropout and a sink.
class GradientsOfEverything : public testing::TestWithParam<const char*> {
 protected:
  static constexpr const char* scores[] = {"scaled_dot", "additive", "squared_distance", "cosine"};

  static Tensors inputs() {
    const auto random = [](at::IntArrayRef shape) { return at::randn(shape, at::kDouble); };
    return {random({1, 4, 3, 3}), random({2, 1, 5, 3}), random({1, 2, 5, 2}), random({5, 3}),
            random({4, 8}),       random({3, 1}),       random({4}),          random({4, 3})};
  }

  static AttentionResult attend(const Tensors& x, std::string_view score, Path path) {
    const Normaliser normaliser(GetParam());
    const bool sums_to_one =
        normaliser.row().name == "softmax" || normaliser.row().name == "temperature";
    Parameters parameters;
    if (score_row(score).family == Family::additive) parameters.emplace("v", x[7]);
    return attention(x[0].expand({2, 4, 3, 3}), x[1].expand({2, 2, 5, 3}),
                     x[2].expand({2, 2, 5, 2}),
                     {.score = Score(score, parameters),
                      .scope = causal(2),
                      .bias = relative_keys(x[3]) + buckets({.table = x[4]}) + dense_bias(x[5]) +
                              alibi(x[6].square()),
                      .normaliser = normaliser,
                      .sink = sums_to_one ? x[6] : Tensor(),
                      .soft_cap = 1.5,
                      .dropout = {0.3, 9},
                      .path = path});
  }
};

TEST_P(GradientsOfEverything, AreThoseOfTheTwinOnceAndTwice) {
  const Tensor weights = at::randn({2, 4, 3, 2}, at::kDouble);
  for (const char* score : scores) {
    SCOPED_TRACE(score);
    const Tensors given = inputs();
    Tensors directions;
    for (const Tensor& input : given) directions.push_back(at::randn_like(input));
    Tensors found[2];
    for (const Path path : {Path::composed, Path::fused}) {
      const Tensors x = leaves(given);
      const auto value = [&] {
        const auto [context, lse] = attend(x, score, path);
        return (context * weights).sum() + lse.square().sum();
      };
      Tensors& all = found[path == Path::fused];
      all = gradients(value(), x, false);
      const Tensors first = gradients(value(), x, true);
      Tensor along = at::zeros({}, at::kDouble);
      for (size_t i = 0; i < x.size(); ++i) along = along + (first[i] * directions[i]).sum();
      for (const Tensor& each : first) all.push_back(each.detach());
      for (const Tensor& each : gradients(along, x, false)) all.push_back(each);
    }
    // Sums of some hundred terms of at most the result's size, rounded in another order.
    for (size_t i = 0; i < found[0].size(); ++i) {
      const double size = 1 + found[0][i].abs().max().item<double>();
      EXPECT_LE((found[1][i] - found[0][i]).abs().max().item<double>(), 1e3 * 0x1p-53 * size) << i;
    }
  }
}

TEST_P(GradientsOfEverything, AreDifferencesOnceAndTwice) {
  const Tensor weights = at::randn({2, 4, 3, 2}, at::kDouble);
  const std::vector<std::string> names = {"query",   "key",   "value", "relative_keys",
                                          "buckets", "dense", "sink",  "v"};
  for (const char* score : scores) {
    SCOPED_TRACE(score);
    const Function function = [&](const Tensors& x) {
      const auto [context, lse] = attend(x, score, Path::fused);
      return (context * weights).sum() + lse.square().sum();
    };
    const Tensors given = inputs();
    expect_gradients(function, given, names);
    expect_second_gradients(function, given, names);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Normalisers, GradientsOfEverything,
    testing::Values("softmax", "temperature:0.7", "sigmoid", "none", "sparsemax", "entmax15",
                    "entmax:1.3", "softpick", "top_k:2", "stick_breaking"),
    [](const auto& info) {
      return std::string(info.param).substr(0, std::string(info.param).find(':'));
    });

}  // namespace gradients_test
}  // namespace attend::reference
