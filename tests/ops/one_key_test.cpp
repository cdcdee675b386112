// Tests of normalisers that choose one key or its expectation: hard, gumbel and the monotonic pair.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/ops/attention.h"
#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend::reference {
namespace one_key_test {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Location scores are the queries themselves, and identity values show the weights.
AttentionResult weigh(const Tensor& scores, const AttentionSpec& choices) {
  AttentionSpec spec = choices;
  spec.score = "location";
  const Tensor keys = at::eye(scores.size(-1), at::kDouble);
  return attention(scores, keys, keys, spec);
}

Tensor weights_of(const Tensor& scores, const Normaliser& normaliser, const Scope& scope = {}) {
  return weigh(scores, {.scope = scope, .normaliser = normaliser}).context;
}

TEST(Hard, TakesTheLargestInScope) {
  for (const int64_t keys : {1, 3, 59}) {
    const Tensor scores = at::randn({7, keys}, at::kDouble);
    const auto [weights, lse] = weigh(scores, {.scope = causal(-1), .normaliser = "hard"});
    for (int64_t i = 0; i < 7; ++i) {
      int64_t best = -1;
      double sum = 0;
      for (int64_t j = 0; j < std::min(i, keys); ++j) {
        const double score = scores[i][j].item<double>();
        sum += std::exp(score);
        if (best < 0 || score > scores[i][best].item<double>()) best = j;
      }
      for (int64_t j = 0; j < keys; ++j)
        EXPECT_EQ(weights[i][j].item<double>(), j == best ? 1 : 0) << i << " " << j;
      if (best < 0)
        EXPECT_EQ(lse[i].item<double>(), -infinity);
      else
        EXPECT_NEAR(lse[i].item<double>(), std::log(sum), 1e-12);
    }
  }
}

// Share of each of 4 keys in 20,000 rows of equal scores.
Tensor shares(const Normaliser& normaliser, const Tensor& scores) {
  return weights_of(scores.expand({20000, 4}), normaliser).mean(0);
}

TEST(Hard, DrawsFromTheSoftmax) {
  const Tensor scores = at::tensor({0.0, 1.0, -infinity, 2.0}, at::kDouble);
  const Tensor wanted = scores.softmax(-1);
  for (const char* name : {"hard", "gumbel:0.3"}) {
    const Tensor drawn = shares(Normaliser(name, 17), scores);
    // Five standard deviations of a share of 20,000 draws.
    EXPECT_LE((drawn - wanted).abs().max().item<double>(), 5 * std::sqrt(0.25 / 20000)) << name;
    EXPECT_EQ(drawn[2].item<double>(), 0);
    EXPECT_FALSE(at::equal(drawn, shares(Normaliser(name, 18), scores)));
    EXPECT_TRUE(at::equal(drawn, shares(Normaliser(name, 17), scores)));
  }
}

TEST(Hard, GivesTheDrawAgainWithItsProbability) {
  const Tensor query = at::randn({2, 4, 5, 3}, at::kDouble),
               key = at::randn({2, 2, 7, 3}, at::kDouble);
  const Tensor identity = at::eye(7, at::kDouble).expand({2, 2, 7, 7});
  const AttentionSpec spec = {.scope = causal(1), .normaliser = Normaliser("hard", 5)};
  const auto [context, lse] = attention(query, key, identity, spec);
  const Tensor weights = attention_weights(query, key, lse, spec);
  EXPECT_TRUE(at::equal(weights, context));
  EXPECT_TRUE(at::equal(weights.sum(-1), at::ones({2, 4, 5}, at::kDouble)));
  const Tensor scores = attention_scores(query, key, {.scope = causal(1)});
  const Tensor drawn = weights.argmax(-1, true);
  const Tensor probability = scores.log_softmax(-1).gather(-1, drawn).squeeze(-1);
  const Tensor finite = scores.masked_fill(scores == -infinity, 0.0);
  EXPECT_TRUE(at::allclose((weights * finite).sum(-1) - lse, probability, 1e-12, 1e-12));
}

TEST(Hard, HasTheGradientOfItsLseAndValuesAlone) {
  const Tensors inputs = {at::randn({3, 2}, at::kDouble), at::randn({4, 2}, at::kDouble),
                          at::randn({4, 2}, at::kDouble)};
  const Function function = [](const Tensors& x) {
    const auto [context, lse] =
        attention(x[0], x[1], x[2], {.scope = causal(1), .normaliser = Normaliser("hard", 3)});
    return context.pow(3).sum() + lse.square().sum();
  };
  expect_gradients(function, inputs, {"query", "key", "value"});
}

TEST(OneKey, SecondDerivativesAreRefusedWithTheReason) {
  const Tensor x = at::randn({3, 2}, at::kDouble).set_requires_grad(true);
  const auto differentiate = [&](const char* normaliser) {
    const auto result = attention(x, x, x, {.normaliser = normaliser});
    gradients((normaliser[0] == 'h' ? result.lse : result.context).sum(), {x}, true);
  };
  expect_errors({
      {[&] { differentiate("hard"); },
       "normaliser hard has no second derivative: the chosen key is not a smooth function"},
      {[&] { differentiate("monotonic"); },
       "normaliser monotonic has no second derivative: its expectation is computed key by key; "
       "differentiate it once, without create_graph, or take softmax"},
  });
}

// Jacobian of a row's weights with respect to its scores.
Tensor jacobian(const Tensor& scores, const Normaliser& normaliser) {
  const Tensor row = scores.detach().clone().set_requires_grad(true);
  const Tensor weights = weights_of(row.unsqueeze(0), normaliser)[0];
  Tensors rows;
  for (int64_t j = 0; j < scores.size(0); ++j)
    rows.push_back(gradients(weights[j], {row}, false)[0]);
  return at::stack(rows);
}

TEST(Gumbel, IsOneHotForwardAndASoftmaxBackward) {
  const Tensor scores = at::tensor({0.3, -0.4, 0.9}, at::kDouble);
  for (const uint64_t seed : {0, 1, 2, 3, 4}) {
    const Normaliser normaliser("gumbel:0.7", seed);
    const Tensor weights = weights_of(scores.unsqueeze(0), normaliser)[0];
    EXPECT_TRUE(at::equal(std::get<0>(weights.sort()), at::tensor({0.0, 0.0, 1.0}, at::kDouble)));
    // Equal seeds draw the same key as "hard".
    EXPECT_TRUE(at::equal(weights, weights_of(scores.unsqueeze(0), Normaliser("hard", seed))[0]));
    // J_jk = (p_j [j = k] - p_j p_k) / T: three products determine p.
    const Tensor products = -0.7 * jacobian(scores, normaliser);
    const auto at_place = [&](int64_t j, int64_t k) { return products[j][k].item<double>(); };
    const std::vector<double> p = {std::sqrt(at_place(0, 1) * at_place(0, 2) / at_place(1, 2)),
                                   std::sqrt(at_place(0, 1) * at_place(1, 2) / at_place(0, 2)),
                                   std::sqrt(at_place(0, 2) * at_place(1, 2) / at_place(0, 1))};
    EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-10);
    for (int64_t j = 0; j < 3; ++j) {
      const double own = p[static_cast<size_t>(j)];
      EXPECT_NEAR(at_place(j, j), own * own - own, 1e-10);
    }
    EXPECT_EQ(std::max_element(p.begin(), p.end()) - p.begin(), weights.argmax().item<int64_t>());
    if (seed != 0) continue;
    const Tensor soft = (scores / 0.7).softmax(-1);
    for (int64_t j = 0; j < 3; ++j)
      EXPECT_NEAR(p[static_cast<size_t>(j)], soft[j].item<double>(), 1e-10);
  }
}

TEST(Gumbel, IsTwiceDifferentiableAsItsSoftmax) {
  const Tensor scores = at::randn({1, 4}, at::kDouble), upstream = at::randn({1, 4}, at::kDouble);
  Tensors found;
  for (const bool soft : {false, true}) {
    const Tensors x = leaves({scores});
    const Tensor weights = soft ? (x[0] / 0.5).softmax(-1) : weights_of(x[0], "gumbel:0.5");
    const Tensor first = gradients((weights * upstream).sum(), x, true)[0];
    found.push_back(gradients(first.square().sum(), x, false)[0]);
  }
  EXPECT_TRUE(at::allclose(found[0], found[1], 1e-12, 1e-13));
}

// Raffel et al. 2017, eq. 8, as a sum over the key of the previous query: a_ij = p_ij sum_{k <= j}
// a_i-1,k prod_{l = k}^{j - 1} (1 - p_il).
Tensor expected_alignment(const Tensor& scores, const Tensor& in_scope) {
  const int64_t queries = scores.size(0), keys = scores.size(1);
  Tensor alignment = at::zeros({queries, keys}, at::kDouble);
  std::vector<double> before(static_cast<size_t>(keys), 0.0);
  before[0] = 1;
  for (int64_t i = 0; i < queries; ++i) {
    const auto p = [&](int64_t j) {
      return in_scope[i][j].item<bool>() ? 1 / (1 + std::exp(-scores[i][j].item<double>())) : 0.0;
    };
    for (int64_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (int64_t k = 0; k <= j; ++k) {
        double way = before[static_cast<size_t>(k)];
        for (int64_t l = k; l < j; ++l) way *= 1 - p(l);
        sum += way;
      }
      alignment[i][j] = p(j) * sum;
    }
    for (int64_t j = 0; j < keys; ++j)
      before[static_cast<size_t>(j)] = alignment[i][j].item<double>();
  }
  return alignment;
}

TEST(Monotonic, IsTheExpectedAlignment) {
  for (const int64_t keys : {1, 2, 11}) {
    for (const double spread : {0.1, 1.0, 40.0}) {
      const Tensor scores = at::randn({5, keys}, at::kDouble) * spread;
      const Tensor mask = at::rand({5, keys}) < 0.8;
      const auto [weights, lse] =
          weigh(scores, {.scope = dense_mask(mask), .normaliser = "monotonic"});
      EXPECT_TRUE(at::allclose(weights, expected_alignment(scores, mask), 1e-12, 1e-14));
      const Tensor has_key = mask.any(-1);
      EXPECT_TRUE(at::equal(lse.eq(0), has_key));
      EXPECT_TRUE(at::equal(lse.eq(-infinity), has_key.logical_not()));
    }
  }
}

TEST(Monotonic, HasGradientsThroughAllQueries) {
  const Tensors inputs = {at::randn({2, 4, 3}, at::kDouble), at::randn({2, 5, 3}, at::kDouble)};
  const Tensor lengths = at::tensor(std::vector<int64_t>{5, 3}, at::kLong);
  const Function function = [&](const Tensors& x) {
    return attention(x[0], x[1], x[1], {.scope = key_lengths(lengths), .normaliser = "monotonic"})
        .context.pow(3)
        .sum();
  };
  expect_gradients(function, inputs, {"query", "key"});
}

// The test-time algorithm, position by position.
Tensor hard_alignment(const Tensor& scores, const Tensor& in_scope) {
  Tensor alignment = at::zeros_like(scores);
  int64_t key = 0;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    while (key < scores.size(1) &&
           !(in_scope[i][key].item<bool>() && scores[i][key].item<double>() >= 0))
      ++key;
    if (key < scores.size(1)) alignment[i][key] = 1.0;
  }
  return alignment;
}

TEST(MonotonicHard, StopsWhereTheProbabilityIsAHalf) {
  for (const int64_t keys : {1, 2, 11, 30}) {
    for (int trial = 0; trial < 4; ++trial) {
      const Tensor scores = at::randn({6, keys}, at::kDouble) - 0.8;
      scores.select(0, 2).masked_fill_(scores.select(0, 2).abs() < 0.3, 0.0);
      const Tensor mask = at::rand({6, keys}) < 0.8;
      const Tensor wanted = hard_alignment(scores, mask);
      EXPECT_TRUE(at::equal(weights_of(scores, "monotonic_hard", dense_mask(mask)), wanted));
      // With probabilities of 0 and 1 the expectation is the hard alignment.
      const Tensor certain = at::where(scores >= 0, at::full({}, 800.0, at::kDouble),
                                       at::full({}, -800.0, at::kDouble));
      EXPECT_TRUE(at::equal(weights_of(certain, "monotonic", dense_mask(mask)), wanted));
    }
  }
}

TEST(MonotonicHard, GoesOnFromTheLargestOfThePast) {
  const Tensor scores = at::tensor({1.0, 1.0, -1.0, 1.0}, at::kDouble).unsqueeze(0);
  const auto from = [&](const Tensor& previous) {
    return weigh(scores, {.normaliser = "monotonic_hard", .past = {previous, {}}}).context[0];
  };
  const Tensor one_hot = at::eye(4, at::kDouble);
  EXPECT_TRUE(at::equal(from(one_hot[1]), one_hot[1]));
  EXPECT_TRUE(at::equal(from(one_hot[2]), one_hot[3]));
  EXPECT_TRUE(at::equal(from(at::tensor({0.3, 0.1, 0.4, 0.2}, at::kDouble)), one_hot[3]));
  EXPECT_TRUE(at::equal(from(at::zeros({4}, at::kDouble)), at::zeros({4}, at::kDouble)));
}

// At this temperature a difference of 1 is practically infinite.
TEST(Temperature, OfTheLeastSizeTakesTheLargest) {
  const Tensor x = at::tensor({3.0F, -20.0F, 4.0F, 1.0F}).view({4, 1}), one = at::ones({1, 1});
  for (const char* name : {"temperature:1e-18", "gumbel:1e-18"})
    for (const Path path : {Path::automatic, Path::composed})
      EXPECT_EQ(attention(one, x, x, {.normaliser = name, .path = path}).context.item<float>(), 4);
}

// Forward-mode derivatives of the contexts and normalisers along a direction, against differences.
TEST(OneKey, HaveForwardMode) {
  for (const char* name : {"hard", "monotonic"}) {
    SCOPED_TRACE(name);
    const Tensors inputs = {at::randn({2, 4, 3}, at::kDouble), at::randn({2, 5, 3}, at::kDouble),
                            at::randn({2, 5, 2}, at::kDouble)};
    const Tensor lengths = at::tensor({5, 3}, at::kLong);
    const auto function = [&](const Tensors& x) {
      const auto [context, lse] =
          attention(x[0], x[1], x[2], {.scope = key_lengths(lengths), .normaliser = name});
      return at::cat({context.flatten(), lse.flatten()});
    };
    Tensors directions, before, after;
    // The best step of central differences, the cube root of 1e-16.
    constexpr double step = 1e-5;
    for (const Tensor& x : inputs) {
      directions.push_back(at::randn_like(x));
      before.push_back(x - step * directions.back());
      after.push_back(x + step * directions.back());
    }
    const Tensor wanted = (function(after) - function(before)) / (2 * step);
    const auto level = torch::autograd::ForwardADLevel::get_next_idx();
    {
      Tensors duals;
      for (size_t i = 0; i < inputs.size(); ++i)
        duals.push_back(at::_make_dual(inputs[i], directions[i], level));
      EXPECT_TRUE(at::allclose(function(duals)._fw_grad(level), wanted, 1e-7, 1e-8));
    }
    torch::autograd::ForwardADLevel::release_idx(level);
  }
}

TEST(OneKey, RowsWithoutKeysAreNothing) {
  for (const char* name : {"hard", "gumbel", "monotonic", "monotonic_hard"}) {
    SCOPED_TRACE(name);
    const Tensor x = at::randn({3, 2}, at::kDouble);
    for (const bool no_keys : {false, true}) {
      const Tensors inputs = leaves({x, no_keys ? x.narrow(0, 0, 0) : x});
      const AttentionSpec spec = {.scope = causal(-1), .normaliser = Normaliser(name, 2)};
      const auto result = attention(inputs[0], inputs[1], inputs[1], spec);
      const int64_t empty = no_keys ? 3 : 1;
      EXPECT_TRUE(
          at::equal(result.context.narrow(0, 0, empty), at::zeros({empty, 2}, at::kDouble)));
      EXPECT_TRUE((result.lse.narrow(0, 0, empty) == -infinity).all().item<bool>());
      for (const Tensor& gradient : gradients(result.context.square().sum(), inputs, false))
        EXPECT_TRUE(gradient.isfinite().all().item<bool>());
      const Tensor weights = attention_weights(x, inputs[1].detach(), result.lse.detach(), spec);
      EXPECT_EQ(weights.narrow(0, 0, empty).abs().sum().item<double>(), 0);
    }
  }
}

TEST(Normalisers, AreWrittenWithTheirNumber) {
  EXPECT_EQ(Normaliser("temperature:0.25").options().temperature, 0.25);
  EXPECT_EQ(Normaliser("gumbel", 7).options().seed, 7U);
  EXPECT_EQ(Normaliser("gumbel:2").options().temperature, 2);
  expect_errors({
      {[] { Normaliser("temperature:0"); },
       "normaliser temperature:T: T is '0'; it must be a number from 1e-18 to 1e+18, as in "
       "temperature:0.5"},
      {[] { Normaliser("gumbel:1e-39"); }, "T is '1e-39'"},
      {[] { Normaliser("temperature:1e300"); }, "T is '1e300'"},
      {[] { Normaliser("temperature:"); }, "T is ''"},
      {[] { Normaliser("gumbel:1x"); }, "T is '1x'"},
      {[] { Normaliser("gumbel:nan"); }, "T is 'nan'"},
      {[] { Normaliser("temperature:inf"); }, "T is 'inf'"},
      {[] { Normaliser("softmax:2"); }, "softmax takes no number; write softmax"},
      {[] { Normaliser("temprature:2"); }, "no normaliser is called 'temprature'; did you mean"},
  });
}

}  // namespace one_key_test
}  // namespace attend::reference
