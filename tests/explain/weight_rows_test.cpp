#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/weight_rows-inl.h"
#include "attend/explain/weight_tests.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace weight_rows_test {

using at::Tensor;
using test::model_with_rules;
using test::models_with_rules;
using test::SmallModel;

constexpr double rounding = 1e-12;  // error of sums of a few float64 near 1

at::Generator draws(uint64_t seed = 3) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

bool near(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>() <= rounding;
}

// A traced answer of a model with the weight rows that determine it.
struct Read {
  explicit Read(SmallModel& small)
      : subject(small.subject()),
        trace(trace_network(subject.network(), subject.batch)),
        attention(*answer_attention(trace, {})),
        rows(subject, attention, 8) {
    const Tensor all = traced_scope(attention);
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < rows.rows().size(0); ++i)
      parts.push_back(all.index_select(1, rows.rows()[i]));
    scope = at::stack(parts);
  }

  at::NoGradGuard not_recorded;
  Subject subject;
  NetworkTrace trace;
  const TracedAttention& attention;
  WeightRows rows;
  Tensor scope;  // [tokens, heads, rows, keys]
};

TEST(WeightRows, ChangeWeightsInScopeAlone) {
  for (SmallModel& small : models_with_rules()) {
    SCOPED_TRACE(small.name);
    const Read read(small);
    ASSERT_FALSE(read.rows.tokens().empty());
    EXPECT_EQ(small.name == "window" || small.name == "causal", !read.scope.all().item<bool>());
    const Tensor each = at::arange(read.scope.size(0));
    for (const Tensor& changed : {read.rows.level(), read.rows.permuted(each, draws()),
                                  read.rows.without(read.rows.largest()),
                                  read.rows.of_variables(read.rows.near(draws()))}) {
      ASSERT_EQ(changed.sizes(), read.rows.weights().sizes());
      EXPECT_TRUE(near(changed * read.scope, changed));
      EXPECT_FALSE(near(changed, read.rows.weights()));
    }
  }
}

TEST(WeightRows, PermuteAndLevelKeepTheSumOfARow) {
  for (SmallModel& small : models_with_rules()) {
    SCOPED_TRACE(small.name);
    const Read read(small);
    const Tensor sums = read.rows.weights().sum(3);
    const Tensor permuted = read.rows.permuted(at::arange(sums.size(0)), draws());
    EXPECT_TRUE(near(permuted.sum(3), sums));
    EXPECT_TRUE(near(std::get<0>(permuted.sort(3)), std::get<0>(read.rows.weights().sort(3))));
    EXPECT_TRUE(near(read.rows.level().sum(3), sums));
    const Tensor level = read.rows.level().masked_fill(read.scope.logical_not(), -9.0);
    const Tensor largest = level.amax(3, true);
    EXPECT_TRUE(
        near(largest.expand_as(level).masked_select(read.scope), level.masked_select(read.scope)));
  }
}

TEST(WeightRows, WithoutAWeightTheOthersGrowOnlyWhereTheSumMustBeOne) {
  for (SmallModel& small : models_with_rules()) {
    SCOPED_TRACE(small.name);
    const Read read(small);
    const Tensor largest = read.rows.largest(), left = read.rows.without(largest);
    const Tensor others = read.rows.weights().masked_fill(largest, 0.0);
    const bool grow =
        small.name != "sigmoid" && small.name != "unnormalised" && small.name != "sink";
    if (!grow) {
      EXPECT_TRUE(near(left, others));
      EXPECT_FALSE(near(read.rows.weights().sum(3), at::ones({}, at::kDouble)));
      continue;
    }
    EXPECT_TRUE(near(left, others / others.sum(3, true).clamp_min(1e-300)));
  }
}

TEST(WeightRows, AnotherKeyIsInScopeAndNotTheLargest) {
  for (SmallModel& small : models_with_rules()) {
    SCOPED_TRACE(small.name);
    const Read read(small);
    const Tensor largest = read.rows.largest();
    EXPECT_TRUE(largest.sum(3).eq(1).all().item<bool>());
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Tensor another = read.rows.another(draws(seed));
      EXPECT_FALSE(another.logical_and(largest).any().item<bool>());
      EXPECT_TRUE(near(another.logical_and(read.scope.any(1, true)).to(at::kDouble),
                       another.to(at::kDouble)));
      // In a causal model the first row sees only one key.
      const Tensor several = read.scope.any(1, true).sum(3) > 1;
      EXPECT_TRUE(another.sum(3).eq(several).all().item<bool>());
    }
  }
}

TEST(WeightRows, VariablesReachWhatTheNormaliserAllows) {
  for (SmallModel& small : models_with_rules()) {
    SCOPED_TRACE(small.name);
    const Read read(small);
    bool below_0 = false;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Tensor made = read.rows.of_variables(3 * read.rows.near(draws(seed)));
      EXPECT_TRUE(at::isfinite(made).all().item<bool>());
      below_0 = below_0 || (made < 0).any().item<bool>();
      if (small.name == "unnormalised") continue;
      EXPECT_LE(made.max().item<double>(), 1 + rounding);
      const Tensor sums = made.sum(3);
      if (small.name == "sigmoid")
        EXPECT_GT(sums.max().item<double>(), 1.5);
      else if (small.name == "sink")
        EXPECT_LT(sums.max().item<double>(), 1);
      else
        EXPECT_TRUE(near(sums, at::ones_like(sums)));
    }
    EXPECT_EQ(below_0, small.name == "unnormalised");
  }
}

TEST(RowDivergence, IsThatOfSharesWithTheirSigns) {
  const auto divergence = [](std::vector<double> a, std::vector<double> b) {
    return row_divergence(at::tensor(a), at::tensor(b)).item<double>();
  };
  EXPECT_NEAR(divergence({1, 0}, {0, 1}), std::log(2), rounding);
  EXPECT_NEAR(divergence({0.2, 0.3}, {0.4, 0.6}), 0, rounding);
  EXPECT_NEAR(divergence({1, 0}, {-1, 0}), std::log(2), rounding);
  // 0.5 (log(1 / 0.75) + 0.5 log(0.5 / 0.75) + 0.5 log(0.5 / 0.25))
  EXPECT_NEAR(divergence({1, 0}, {0.5, 0.5}),
              0.5 * (std::log(4.0 / 3) + 0.5 * std::log(2.0 / 3) + 0.5 * std::log(2)), rounding);
}

TEST(RowDivergence, HasSlopesWhereAWeightIsZero) {
  Tensor weights = at::tensor({0.5, 0.5, 0.0}, at::kDouble).requires_grad_();
  row_divergence(weights, at::tensor({0.9, 0.1, 0.0}, at::kDouble)).backward();
  EXPECT_TRUE(at::isfinite(weights.grad()).all().item<bool>());
}

// The log probability of a token after its row was replaced, by a run of the whole network.
Tensor answer_with(const Read& read, int64_t token, const Tensor& weights) {
  size_t first = 0;
  bool begun = false;
  TraceOptions options{.keeps = TraceParts::vectors};
  options.weights = [&](const Site& site, size_t call, const Tensor& old) {
    if (!(site == read.attention.site)) return Tensor();
    if (!begun) first = call;
    begun = true;
    if (static_cast<int64_t>(call - first) != token) return old;
    return weights.unsqueeze(0);
  };
  return trace_network(read.subject.network(), read.subject.batch, options)
      .log_probabilities[0][token];
}

// Uniform weights within a window, by a run of the whole network for each token.
TEST(WeightTests, LevelWeightsWithinTheScope) {
  SmallModel small = model_with_rules("window");
  const Read read(small);
  double sum = 0;
  for (int64_t t = 0; t < 3; ++t) {
    Tensor level = at::zeros({1, 1, 5}, at::kDouble);
    const int64_t from = std::max<int64_t>(0, t - 1), to = std::min<int64_t>(4, t + 1);
    level.slice(2, from, to + 1).fill_(1.0 / static_cast<double>(to + 1 - from));
    sum += (read.trace.log_probabilities[0][t] - answer_with(read, t, level)).item<double>();
  }
  EXPECT_NEAR(test_weights(read.subject).uniform_loss, sum / 3, 1e-9);
}

// A single step after the others equals the same step in a full pass.
TEST(WeightTests, StepsAreThoseOfAWholePass) {
  for (const char* name : {"sigmoid", "unnormalised", "sink", "sparsemax"}) {
    SCOPED_TRACE(name);
    SmallModel small = model_with_rules(name);
    const Read read(small);
    const Tensor level = read.rows.level();
    double sum = 0;
    for (int64_t t = 0; t < 3; ++t)
      sum += (read.trace.log_probabilities[0][t] - answer_with(read, t, level[t])).item<double>();
    EXPECT_NEAR(test_weights(read.subject).uniform_loss, sum / 3, 1e-9);
  }
}

TEST(WeightTests, TellThatARowOfOneKeyCannotBeTested) {
  SmallModel small = test::small_model("classifier_fixed");
  small.source = "a";
  EXPECT_EQ(test_weights(small.subject()).tokens, 0);
  small.source = "a b";
  EXPECT_EQ(test_weights(small.subject()).tokens, 1);
}

TEST(WeightTests, SearchesStayWithinTheirBounds) {
  for (SmallModel& small : models_with_rules()) {
    SCOPED_TRACE(small.name);
    const WeightTests tests = test_weights(small.subject());
    EXPECT_GT(tests.tokens, 0);
    EXPECT_GE(tests.adversarial, 0);
    EXPECT_LE(tests.adversarial, std::log(2) + rounding);
    EXPECT_TRUE(std::isfinite(tests.permuted));
  }
}

}  // namespace weight_rows_test
}  // namespace attend
