// Tests of normalisers against bisection and scalar rules, and of their derivatives on both paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "tests/ops/differences.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace normalisers_test {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

double weight_of(std::string_view normaliser, double score, double threshold) {
  if (normaliser == "softmax" || normaliser == "temperature") return std::exp(score - threshold);
  if (normaliser == "sigmoid") return 1 / (1 + std::exp(-score));
  if (normaliser == "none") return std::isinf(score) ? 0 : score;
  if (normaliser == "softpick")
    return score <= 0  ? 0
           : score < 1 ? std::expm1(score) * std::exp(-threshold)
                       : std::exp(score - threshold) - std::exp(-threshold);
  const double above = std::max(0.0, score - threshold);
  return normaliser == "sparsemax" ? above : above * above / 4;  // entmax: A = 1.5 by default
}

double softpick_divisor(const std::vector<double>& scores) {
  double sum = 1e-8;
  for (const double score : scores) sum += std::isinf(score) ? 0 : std::abs(std::expm1(score));
  return std::log(sum);
}

// The threshold for which the weights sum to 1, by bisection.
double threshold_of(std::string_view normaliser, const std::vector<double>& scores) {
  if (normaliser == "softpick") return softpick_divisor(scores);
  double low = *std::max_element(scores.begin(), scores.end()) - 4, high = low + 104;
  for (int step = 0; step < 200; ++step) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double score : scores) sum += weight_of(normaliser, score, middle);
    (sum > 1 ? low : high) = middle;
  }
  return low;
}

// From the last key on, each key takes its share of the rest.
std::vector<double> stick_weights(const std::vector<double>& scores) {
  std::vector<double> weights(scores.size());
  double left = 1;
  for (size_t j = scores.size(); j-- > 0;) {
    weights[j] = left / (1 + std::exp(-scores[j]));
    left /= 1 + std::exp(scores[j]);
  }
  return weights;
}

void keep_largest(std::vector<double>& scores, size_t count) {
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double least = sorted[std::min(count, sorted.size()) - 1];
  for (double& score : scores)
    if (score < least) score = -infinity;
}

class EveryNormaliser : public testing::TestWithParam<NormaliserRow> {};

TEST_P(EveryNormaliser, IsItsFormula) {
  const bool has_threshold = GetParam().lse != Lse::zero;
  const bool is_top = GetParam().name == "top_k";
  // On its scores a row with factors is a softmax.
  const std::string_view name =
      is_top || GetParam().factor != nullptr ? std::string_view("softmax") : GetParam().name;
  for (const int64_t keys : {1, 2, 3, 17, 59}) {
    for (const double spread : {0.01, 1.0, 30.0}) {
      Tensor scores = at::randn({2, 1, 4, keys}, at::kDouble) * spread;
      scores[1][0][2].fill_(0.25);  // equal scores
      if (keys > 2) scores.select(3, 1).fill_(-infinity);
      const auto [weights, normaliser] = GetParam().normalise(scores, {}, {});
      for (int64_t row = 0; row < 8; ++row) {
        const Tensor own = scores[row / 4][0][row % 4];
        std::vector<double> numbers(own.data_ptr<double>(), own.data_ptr<double>() + keys);
        if (is_top) keep_largest(numbers, 8);
        const double threshold = has_threshold ? threshold_of(name, numbers) : 0;
        // Bisection ends within a few roundings of numbers up to 100.
        EXPECT_NEAR(normaliser[row / 4][0][row % 4].item<double>(), threshold, 1e-12);
        std::vector<double> wanted = stick_weights(numbers);
        if (!GetParam().order_dependent)
          std::transform(numbers.begin(), numbers.end(), wanted.begin(),
                         [&](double score) { return weight_of(name, score, threshold); });
        for (int64_t j = 0; j < keys; ++j)
          EXPECT_NEAR(weights[row / 4][0][row % 4][j].item<double>(),
                      wanted[static_cast<size_t>(j)], 1e-11);
      }
    }
  }
}

TEST_P(EveryNormaliser, GivesRowsWithoutKeysNothing) {
  const Tensor x = at::rand({3, 2}, at::kDouble) + 0.1;  // softpick needs a positive score
  for (const Path path : {Path::composed, Path::fused}) {
    for (const bool no_keys : {false, true}) {
      const Tensors inputs = leaves({x, no_keys ? x.narrow(0, 0, 0) : x});
      const Scope past = causal(-1);
      const auto result = attention(inputs[0], inputs[1], inputs[1],
                                    {.scope = past, .normaliser = GetParam().name, .path = path});
      const int64_t empty_rows = no_keys ? 3 : 1;
      EXPECT_TRUE(at::equal(result.context.narrow(0, 0, empty_rows),
                            at::zeros({empty_rows, 2}, at::kDouble)));
      EXPECT_TRUE((result.lse.narrow(0, 0, empty_rows) == -infinity).all().item<bool>());
      for (const Tensor& gradient : gradients(result.context.square().sum(), inputs, false))
        EXPECT_TRUE(gradient.isfinite().all().item<bool>());
      if (no_keys) continue;
      EXPECT_FALSE(result.context[1].eq(0).all().item<bool>());
      const Tensor weights = attention_weights(
          x, x, result.lse.detach(), {.scope = past, .normaliser = GetParam().name, .path = path});
      EXPECT_TRUE(at::equal(weights[0], at::zeros({3}, at::kDouble)));
    }
  }
}

// A bias of only -inf acts as a mask.
TEST_P(EveryNormaliser, GivesRowsOfInfiniteBiasesNothing) {
  if (GetParam().factor != nullptr) return;  // it counts the keys of the scope
  const Tensors given = {at::randn({2, 2, 3, 2}, at::kDouble), at::randn({2, 1, 4, 2}, at::kDouble),
                         at::randn({2, 1, 4, 2}, at::kDouble),
                         at::randn({2, 1, 3, 4}, at::kDouble)};
  Tensors masked = given;
  masked[3] = given[3].clone();
  masked[3].select(2, 1).fill_(-infinity);
  masked[3].select(3, 2).fill_(-infinity);
  Tensor mask = at::ones({3, 4}, at::kBool);
  mask[1].fill_(false);
  mask.select(1, 2).fill_(false);
  for (const Path path : {Path::composed, Path::fused}) {
    for (const bool create_graph : {false, true}) {
      SCOPED_TRACE(std::string(path == Path::fused ? "fused" : "composed") +
                   (create_graph ? ", to be differentiated again" : ""));
      const auto run = [&](const Tensors& x, const Scope& scope) {
        return attention(x[0], x[1], x[2],
                         {.scope = scope,
                          .bias = dense_bias(x[3]),
                          .normaliser = GetParam().name,
                          .path = path});
      };
      const auto sum_of = [](const AttentionResult& result) {
        return result.context.pow(3).sum() + result.lse.masked_fill(result.lse.isinf(), 0.0).sum();
      };
      const Tensors by_bias = leaves(masked), by_scope = leaves(given);
      const auto found = run(by_bias, all_keys()), wanted = run(by_scope, dense_mask(mask));
      // The same keys, in sums of equally many terms.
      EXPECT_TRUE(at::allclose(found.context, wanted.context, 1e-12, 1e-13));
      EXPECT_TRUE(at::allclose(found.lse, wanted.lse, 1e-12, 1e-13));
      EXPECT_TRUE(found.context.select(2, 1).eq(0).all().item<bool>());
      EXPECT_TRUE(found.lse.select(2, 1).eq(-infinity).all().item<bool>());
      const Tensors first = gradients(sum_of(found), by_bias, create_graph);
      const Tensors expected = gradients(sum_of(wanted), by_scope, create_graph);
      for (size_t i = 0; i < first.size(); ++i)
        EXPECT_TRUE(at::allclose(first[i], expected[i], 1e-11, 1e-12)) << i;
      EXPECT_TRUE(first[0].select(2, 1).eq(0).all().item<bool>());
      if (!create_graph) continue;
      const Tensors second = gradients(first[0].square().sum(), by_bias, false);
      const Tensors again = gradients(expected[0].square().sum(), by_scope, false);
      for (size_t i = 0; i < second.size(); ++i)
        EXPECT_TRUE(at::allclose(second[i], again[i], 1e-11, 1e-12)) << i;
    }
  }
}

// On both paths, for every row of the table, the result of a query that reads a NaN is NaN.
TEST(Normalisers, HideNoNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const NormaliserRow& row : normaliser_table()) {
    for (const bool only : {false, true}) {
      SCOPED_TRACE(std::string(row.name) + (only ? ", no other key" : ""));
      const Score score = row.running_sums ? "elu_features" : "scaled_dot";
      const Tensor key = at::randn({only ? 1 : 4, 2}, at::kDouble);
      key[0][1] = nan;
      Tensor query = at::randn({3, 2}, at::kDouble);
      const AttentionSpec composed = {
          .score = score, .normaliser = row.name, .path = Path::composed};
      for (const Path path : {Path::composed, Path::automatic}) {
        AttentionSpec spec = composed;
        spec.path = path;
        const auto all = attention(query, key, at::ones_like(key), spec);
        EXPECT_TRUE(all.context.isnan().all().item<bool>());
        EXPECT_TRUE(all.lse.isnan().all().item<bool>());
        if (row.sequential) continue;
        Tensor spoilt = query.clone();
        spoilt[1][0] = nan;
        const Tensor whole = at::nan_to_num(key, 0.5);
        const auto one = attention(spoilt, whole, whole, spec);
        for (const int64_t i : {0, 1, 2}) {
          EXPECT_EQ(one.context[i].isnan().all().item<bool>(), i == 1);
          EXPECT_EQ(one.lse[i].isnan().item<bool>(), i == 1);
        }
      }
    }
  }
}

// A centre predicted from a NaN query must not leave the query without keys, which would give a
// context of 0.
TEST(Normalisers, HideNoNanBehindACentre) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor query = at::randn({3, 2}, at::kDouble);
  query[1][0] = nan;
  const Tensor key = at::randn({6, 2}, at::kDouble);
  const Tensor centres = query.sum(-1);
  for (const Path path : {Path::composed, Path::fused}) {
    for (const Scope& scope : {around(centres, 1), around(centres, 1) & causal(4)}) {
      for (const Bias& bias : {Bias(), gaussian(centres, at::ones({3}, at::kDouble))}) {
        const auto found = attention(query, key, key, {.scope = scope, .bias = bias, .path = path});
        for (const int64_t i : {0, 1, 2}) {
          EXPECT_EQ(found.context[i].isnan().all().item<bool>(), i == 1);
          EXPECT_EQ(found.lse[i].isnan().item<bool>(), i == 1);
        }
      }
    }
  }
}

// Additive masks contain the least finite number: the context of a row of only these is the mean.
TEST(Normalisers, OfRowsOfLeastNumbersAreTheMean) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const double least = type == at::kFloat ? -double(std::numeric_limits<float>::max())
                                            : -std::numeric_limits<double>::max();
    const Tensor q = at::zeros({2, 1}, type), k = at::zeros({2, 1}, type);
    const Tensor v = at::tensor({1.0, 3.0}, type).view({2, 1});
    const Tensor bias = at::full({2, 2}, least, at::TensorOptions().dtype(type));
    bias[1][0] = 0;
    for (const Path path : {Path::composed, Path::fused}) {
      const AttentionSpec spec = {.bias = dense_bias(bias), .path = path};
      const auto [context, lse] = attention(q, k, v, spec);
      EXPECT_EQ(context[0].item<double>(), 2);
      EXPECT_EQ(context[1].item<double>(), 1);
      EXPECT_NEAR(lse[0].item<double>() / least, 1, 0x1p-23);
      EXPECT_TRUE(
          at::equal(attention_weights(q, k, lse, spec)[0], at::full({2}, 0.5, v.options())));
    }
  }
}

// The sink remains, unless it is -inf, too.
TEST(Sinks, TakeRowsOfInfiniteBiases) {
  const Tensor x = at::randn({1, 2, 3, 4}, at::kDouble);
  Tensor bias = at::zeros({3, 3}, at::kDouble);
  bias[1].fill_(-infinity);
  for (const Path path : {Path::composed, Path::fused}) {
    SCOPED_TRACE(path == Path::fused ? "fused" : "composed");
    const Tensors inputs = leaves({x, bias, at::tensor({0.5, -infinity}, at::kDouble)});
    const auto [context, lse] =
        attention(inputs[0], inputs[0], inputs[0],
                  {.bias = dense_bias(inputs[1]), .sink = inputs[2], .path = path});
    EXPECT_TRUE(context.select(2, 1).eq(0).all().item<bool>());
    EXPECT_NEAR(lse[0][0][1].item<double>(), 0.5, 1e-15);
    EXPECT_EQ(lse[0][1][1].item<double>(), -infinity);
    for (const bool create_graph : {false, true}) {
      const Tensors found = gradients(context.pow(3).sum(), inputs, create_graph);
      for (const Tensor& gradient : found) EXPECT_FALSE(gradient.isnan().any().item<bool>());
      EXPECT_TRUE(found[1][1].eq(0).all().item<bool>());
    }
  }
}

TEST_P(EveryNormaliser, HasFirstAndSecondDerivatives) {
  const Tensors inputs = {at::randn({2, 2, 3, 2}, at::kDouble),
                          at::randn({2, 1, 4, 2}, at::kDouble),
                          at::randn({2, 1, 4, 2}, at::kDouble)};
  const Tensor weights = at::randn({2, 2, 3, 2}, at::kDouble);
  for (const Path path : {Path::composed, Path::fused}) {
    SCOPED_TRACE(path == Path::fused ? "fused" : "composed");
    const Function function = [&](const Tensors& x) {
      const auto result = attention(
          x[0], x[1], x[2],
          {.scope = causal(1), .normaliser = GetParam().name, .dropout = {0.2, 3}, .path = path});
      return (result.context * weights).sum() + result.lse.square().sum();
    };
    expect_gradients(function, inputs, {"query", "key", "value"});
    expect_second_gradients(function, inputs, {"query", "key", "value"});
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryNormaliser, testing::ValuesIn(fused_normalisers()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Sparse, LeavesHugeScoresFinite) {
  const Tensor query = at::full({1, 1}, 1e5, at::kDouble);
  const Tensor key = at::tensor({-1.0, 0.5, 1.0, 1.0}, at::kDouble).view({4, 1});
  const Tensor wanted = at::tensor({0.0, 0.0, 0.5, 0.5}, at::kDouble).view({1, 4});
  for (const Path path : {Path::composed, Path::fused}) {
    for (const char* name : {"sparsemax", "entmax15"}) {
      const auto result = attention(query, key, at::eye(4, at::kDouble),
                                    {.score = "dot", .normaliser = name, .path = path});
      // A score of 1e5 has an error of 1e5 u.
      EXPECT_TRUE(at::allclose(result.context, wanted, 0, 4e5 * 0x1p-53)) << name;
    }
  }
}

// Kernels have no temperature: every part of the scores is divided by it before.
TEST(Temperature, DividesEveryPartOfTheScores) {
  constexpr double temperature = 0.37;
  const Tensors inputs = {
      at::randn({2, 2, 3, 2}, at::kDouble), at::randn({2, 1, 4, 2}, at::kDouble),
      at::randn({2, 1, 4, 2}, at::kDouble), at::randn({3, 4}, at::kDouble),
      at::rand({2}, at::kDouble),           at::randn({2, 8}, at::kDouble),
      at::randn({2, 2, 3}, at::kDouble),    at::rand({2, 2, 3}, at::kDouble) + 1,
      at::randn({2}, at::kDouble)};
  const auto spec_of = [](const Tensors& x, const char* normaliser, Path path) -> AttentionSpec {
    return {.scope = causal(),
            .bias = dense_bias(x[3]) + alibi(x[4]) +
                    buckets({.table = x[5], .maximum_distance = 9}) + gaussian(x[6], x[7]),
            .normaliser = normaliser,
            .sink = x[8],
            .soft_cap = 2,
            .path = path};
  };
  const Tensor scores =
      attention_scores(inputs[0], inputs[1], spec_of(inputs, "softmax", Path::composed));
  const Tensor sink = inputs[8].view({1, 2, 1, 1}).expand({2, 2, 3, 1});
  const Tensor divided = at::cat({scores, sink}, -1) / temperature;
  const Tensor weights = divided.softmax(-1).narrow(-1, 0, 4);
  for (const Path path : {Path::composed, Path::fused}) {
    const AttentionSpec spec = spec_of(inputs, "temperature:0.37", path);
    const auto [context, lse] = attention(inputs[0], inputs[1], inputs[2], spec);
    EXPECT_TRUE(at::allclose(context, at::matmul(weights, inputs[2]), 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(lse, divided.logsumexp(-1), 1e-12, 1e-12));
    EXPECT_TRUE(
        at::allclose(attention_weights(inputs[0], inputs[1], lse, spec), weights, 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(attention_scores(inputs[0], inputs[1], spec), scores, 1e-12, 1e-12));
    const Function function = [&](const Tensors& x) {
      const auto result = attention(x[0], x[1], x[2], spec_of(x, "temperature:0.37", path));
      return result.context.pow(3).sum() + result.lse.square().sum();
    };
    expect_gradients(
        function, inputs,
        {"query", "key", "value", "bias", "slopes", "table", "centres", "widths", "sink"});
  }
}

TEST(Temperature, DividesTheScoresOfEveryFamily) {
  for (const ScoreRow& row : score_table()) {
    if (row.map_past) continue;  // its scores depend on the weights
    const Problem p = make_problem(row, {.queries = 3}, Given::all, false, at::kDouble, 3);
    const Tensor scores = attention_scores(p.query, p.key, {.score = p.score});
    for (const Path path : paths_of(p, {.score = p.score})) {
      const auto result =
          attention(p.query, p.key, p.value,
                    {.score = p.score, .normaliser = "temperature:0.37", .path = path});
      EXPECT_TRUE(at::allclose(result.context, at::matmul((scores / 0.37).softmax(-1), p.value),
                               1e-11, 1e-12))
          << row.name;
    }
  }
}

// The properties of each row of the table hold for its weights.
TEST(Normalisers, DoWhatTheirRowsSay) {
  at::manual_seed(61);
  // Some rows have only negative scores, for which hard monotonic attention finds no key.
  const Tensor any = at::randn({1, 2, 9, 7}, at::kDouble) - 0.8;
  const Tensor order = at::tensor({3, 0, 6, 1, 5, 2, 4}, at::kLong);
  for (const NormaliserRow& row : normaliser_table()) {
    SCOPED_TRACE(row.name);
    const Tensor scores = row.running_sums ? any.exp() : any;
    const auto weights = [&](const Tensor& x) { return row.normalise(x, {}, {}).weights; };
    const Tensor found = weights(scores);
    EXPECT_EQ(at::allclose(found.sum(-1), at::ones({}, at::kDouble)), row.sums_to_one);
    const bool is_number = row.range == WeightRange::numbers;
    EXPECT_EQ(found.lt(0).any().item<bool>(), is_number);
    if (!is_number) {
      EXPECT_LE(found.max().item<double>(), 1);
      EXPECT_EQ(found.sum(-1).gt(1 + 1e-9).any().item<bool>(), row.range == WeightRange::between);
    }
    EXPECT_EQ(at::allclose(weights(scores + 1.5), found), row.shift_invariant);
    EXPECT_EQ(!at::allclose(weights(scores.index_select(-1, order)), found.index_select(-1, order)),
              row.order_dependent);
    const Tensor lse = row.normalise(scores, {}, {}).normaliser;
    EXPECT_EQ(lse.eq(0).all().item<bool>(), row.lse == Lse::zero);
    if (!row.in_evaluation.empty()) {
      EXPECT_NE(Normaliser(row.in_evaluation).row().name, row.name);
    }
  }
}

TEST(Normalisers, AreFoundByName) {
  EXPECT_EQ(Normaliser().row().name, "softmax");
  try {
    Normaliser("entmx");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no normaliser is called 'entmx'; did you mean entmax?");
  }
  EXPECT_THROW(Normaliser("an unknown normaliser"), Error);
}

}  // namespace normalisers_test
}  // namespace attend::reference
