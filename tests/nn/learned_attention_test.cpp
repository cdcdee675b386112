#include "attend/nn/learned_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "tests/nn/mechanism_rows.h"
#include "tests/support/software_device.h"

namespace attend {
namespace learned_attention_test {

using at::Tensor;
using testing::HasSubstr;

constexpr AttentionSizes sizes{.query_depth = 4,
                               .key_depth = 4,
                               .attention_depth = 3,
                               .keys = 7,
                               .filters = 2,
                               .filter_width = 3};
constexpr int64_t batch = 2, queries = 3, keys = 5;

// Moves parameters from their initial 0 or 1, which would hide mistakes.
void disturb(torch::nn::Module& module) {
  torch::NoGradGuard no_gradient;
  for (Tensor& parameter : module.parameters()) {
    if (parameter.requires_grad()) parameter.add_(torch::randn_like(parameter), 0.3);
  }
}

class EveryLearnedAttention : public testing::TestWithParam<MechanismRow> {
 protected:
  void SetUp() override {
    torch::manual_seed(31);
    query = torch::randn({batch, 1, queries, 4}, torch::kDouble);
    key = torch::randn({batch, 1, keys, 4}, torch::kDouble);
    value = torch::randn({batch, 1, keys, 2}, torch::kDouble);
    lengths = torch::tensor({5, 3});
    numbers = torch::randn({batch, 1, keys}, torch::kDouble);
  }
  std::shared_ptr<LearnedAttention> make(int64_t heads) const {
    auto trained = std::make_shared<LearnedAttention>(GetParam().choices, sizes, heads);
    trained->to(torch::kDouble);
    disturb(*trained);
    return trained;
  }
  Placement whole() const { return {.keys = keys, .key_lengths = lengths, .key_numbers = numbers}; }

  Tensor query, key, value, lengths, numbers;
};

INSTANTIATE_TEST_SUITE_P(Table, EveryLearnedAttention, testing::ValuesIn(mechanism_rows()),
                         row_name);

// Each head has the parameters of an independent mechanism.
TEST_P(EveryLearnedAttention, HeadsAreIndependent) {
  const auto both = make(2);
  const Tensor q = query.expand({batch, 2, queries, 4}), k = key.expand({batch, 2, keys, 4}),
               v = value.expand({batch, 2, keys, 2});
  const auto context = attention(q, k, v, both->spec(q, whole())).context;
  for (int64_t h = 0; h < 2; ++h) {
    const auto one = make(1);
    torch::NoGradGuard no_gradient;
    for (auto& item : one->named_parameters()) {
      const Tensor all = both->named_parameters()[item.key()];
      // Hidden layers that all heads share have the same shape for any number of heads.
      const bool shared = all.sizes() == item.value().sizes();
      item.value().copy_(shared ? all : all.select(0, h).view(item.value().sizes()));
    }
    const Tensor alone = attention(query, key, value, one->spec(query, whole())).context;
    EXPECT_TRUE(torch::allclose(context.select(1, h), alone.select(1, 0), 1e-10, 1e-10));
  }
}

// Queries one by one, each with its offset, give the result of all queries at once.
TEST_P(EveryLearnedAttention, QueriesMayComeOneByOne) {
  const auto trained = make(1);
  const Tensor together = attention(query, key, value, trained->spec(query, whole())).context;
  Placement placement = whole();
  for (int64_t i = 0; i < queries; ++i) {
    const Tensor one = query.narrow(2, i, 1);
    placement.offset = trained->is_positional() ? i : 0;
    const AttentionSpec spec = trained->spec(one, placement);
    const auto [context, lse] = attention(one, key, value, spec);
    EXPECT_TRUE(torch::allclose(context, together.narrow(2, i, 1), 1e-10, 1e-10)) << i;
    if (trained->looks_back())
      placement.past = after(placement.past, attention_weights(one, key, lse, spec).squeeze(2));
  }
}

TEST_P(EveryLearnedAttention, ThreeAxesAreOneHead) {
  const auto trained = make(1);
  const Tensor four = attention(query, key, value, trained->spec(query, whole())).context;
  const Tensor q = query.squeeze(1);
  Placement placement = whole();
  placement.key_numbers = numbers.squeeze(1);
  const Tensor three =
      attention(q, key.squeeze(1), value.squeeze(1), trained->spec(q, placement)).context;
  EXPECT_TRUE(torch::allclose(three, four.squeeze(1), 1e-12, 1e-12));
}

TEST_P(EveryLearnedAttention, GradientsAreDifferences) {
  if (Normaliser(GetParam().choices.normaliser).row().draws == Draws::keys)
    GTEST_SKIP() << "its gradient is an estimate; the estimator has its own test";
  const auto trained = make(1);
  const Tensor weight = torch::randn({batch, 1, queries, 2}, torch::kDouble);
  const auto loss = [&] {
    return (attention(query, key, value, trained->spec(query, whole())).context * weight).sum();
  };
  query.requires_grad_();
  key.requires_grad_();
  loss().backward();
  // The cube root of epsilon balances the rounding and truncation errors of a central difference.
  const double step = std::cbrt(std::numeric_limits<double>::epsilon());
  auto inputs = trained->named_parameters();
  inputs.insert("query", query);
  inputs.insert("key", key);
  for (auto& item : inputs) {
    if (!item.value().requires_grad()) continue;
    // A location score does not use keys.
    const Tensor gradient =
        item.value().grad().defined() ? item.value().grad() : torch::zeros_like(item.value());
    torch::NoGradGuard no_gradient;
    const Tensor direction = torch::randn_like(item.value());
    item.value().add_(direction, step);
    const double above = loss().item<double>();
    item.value().add_(direction, -2 * step);
    const double below = loss().item<double>();
    item.value().add_(direction, step);
    const double expected = (above - below) / (2 * step);
    EXPECT_NEAR((gradient * direction).sum().item<double>(), expected,
                1e4 * step * step * (1 + std::abs(expected)))
        << item.key();
  }
}

// Softmax cancels whatever a query adds equally to all scores.
TEST_P(EveryLearnedAttention, TrainsEveryParameter) {
  const auto trained = make(1);
  if (GetParam().choices.normaliser == "hard") GTEST_SKIP() << "trained by REINFORCE";
  query.requires_grad_();
  Placement placement = whole();
  placement.seed = 3;
  const AttentionSpec spec = trained->spec(query, placement);
  attention(query, key, value, spec).context.square().sum().backward();
  for (const auto& item : trained->named_parameters()) {
    if (!item.value().requires_grad()) continue;
    if (GetParam().choices.score == "linear" && item.key() != "w_k") continue;
    if (item.key() == "fire_b_2") continue;
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 1e-9) << item.key();
  }
}

// p = S sigmoid(v_p . tanh(W_p q)); |j - p| <= D; - (j - p)^2 / (2 (D / 2)^2), written out.
TEST(LearnedAttention, PredictsTheCentreOfLuong) {
  torch::manual_seed(32);
  LearnedAttention trained({.score = "dot", .scope = "around:2", .bias = "gaussian"}, sizes);
  trained.to(torch::kDouble);
  const Tensor query = torch::randn({2, 3, 4}, torch::kDouble) * 2;
  const Tensor key = torch::randn({2, 5, 4}, torch::kDouble);
  const Tensor lengths = torch::tensor({5, 3});
  const AttentionSpec spec = trained.spec(query, {.keys = 5, .key_lengths = lengths});
  const auto [context, lse] = attention(query, key, key, spec);
  const Tensor weights = attention_weights(query, key, lse, spec);
  const auto parameters = trained.named_parameters();
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor hidden = parameters["centre_W_p"].mv(query[b][i]).tanh();
      const double centre =
          lengths[b].item<double>() * parameters["centre_v_p"].dot(hidden).sigmoid().item<double>();
      std::vector<double> expected(5, 0.0);
      double sum = 0;
      for (int64_t j = 0; j < lengths[b].item<int64_t>(); ++j) {
        const double away = static_cast<double>(j) - centre;
        if (std::abs(away) > 2) continue;
        expected[j] = std::exp(query[b][i].dot(key[b][j]).item<double>() - away * away / 2);
        sum += expected[j];
      }
      for (int64_t j = 0; j < 5; ++j)
        EXPECT_NEAR(weights[b][i][j].item<double>(), expected[j] / sum, 1e-12);
    }
  }
}

TEST(LearnedAttention, BeginsWithPublishedValues) {
  const LearnedAttention trained({.bias = "alibi + buckets:8 + offset", .normaliser = "monotonic"},
                                 sizes, 2);
  const auto parameters = trained.named_parameters();
  EXPECT_TRUE(torch::equal(parameters["alibi_slopes"], alibi_slopes(2)));
  EXPECT_TRUE(torch::equal(parameters["offset"], torch::full({2}, -1.0)));
  EXPECT_EQ(parameters["buckets_table"].sizes(), (at::IntArrayRef{2, 8}));
}

// Correia et al. 2019 keep alpha between 1 and 2 by a sigmoid; Nakanishi 2025 begins with s = 0.43.
TEST(LearnedAttention, TrainsTheParameterOfItsNormaliser) {
  const Tensor query = torch::randn({1, 2, 3, 4}), key = torch::randn({1, 2, 5, 4});
  const Placement whole = {.keys = 5};
  LearnedAttention entmax({.normaliser = "entmax"}, sizes, 2);
  const auto alpha = [&] { return entmax.spec(query, whole).normaliser.parameter(); };
  EXPECT_TRUE(torch::allclose(alpha(), torch::full({2}, 1.5)));
  Tensor trained = entmax.named_parameters()["entmax_alpha"];
  for (const double far : {-100.0, 100.0}) {
    torch::NoGradGuard no_gradient;
    trained.fill_(far);
    EXPECT_TRUE(torch::allclose(alpha(), torch::full({2}, far < 0 ? 1.001 : 2.0)));
    EXPECT_FALSE(
        attention(query, key, key, entmax.spec(query, whole)).context.isnan().any().item<bool>());
  }
  const LearnedAttention scalable({.normaliser = "scalable:8"}, sizes, 2);
  EXPECT_TRUE(
      torch::equal(scalable.spec(query, whole).normaliser.parameter(), torch::full({2}, 0.43F)));
  for (const char* fixed : {"entmax:1.5", "top_k:2"})
    EXPECT_EQ(LearnedAttention({.normaliser = fixed}, sizes, 2).parameters().size(), 0U) << fixed;
}

TEST(LearnedAttention, KeepsNoBucketsForLaterKeysWhereThereAreNone) {
  const Tensor query = torch::randn({1, 6, 4});
  const auto looks_both_ways = [&](const char* scope) {
    const LearnedAttention trained({.scope = scope, .bias = "buckets:8"}, sizes);
    const torch::NoGradGuard no_gradient;
    trained.named_parameters()["buckets_table"].copy_(torch::arange(8));
    const Tensor nothing = torch::zeros({1, 6, 4});
    const Bias bias = trained.spec(query, {.keys = 6}).bias;
    const Tensor scores = attention_scores(nothing, nothing, {.bias = bias})[0];
    return scores[0][1].item<float>() != scores[0][0].item<float>();
  };
  for (const char* scope : {"causal", "causal:-1", "causal & window:4", "window:128,0"})
    EXPECT_FALSE(looks_both_ways(scope)) << scope;
  for (const char* scope : {"all", "window:128", "causal:1", "causal | prefix:4"})
    EXPECT_TRUE(looks_both_ways(scope)) << scope;
}

TEST(LearnedAttention, DrawsWhileTrainingAlone) {
  torch::manual_seed(33);
  const Tensor query = torch::randn({4, 9, 4}), key = torch::randn({4, 5, 4});
  for (const char* normaliser : {"hard", "gumbel:1"}) {
    LearnedAttention trained({.normaliser = normaliser}, sizes);
    const auto context = [&](uint64_t seed) {
      return attention(query, key, key, trained.spec(query, {.keys = 5, .seed = seed})).context;
    };
    EXPECT_TRUE(torch::allclose(context(7), context(7)));
    EXPECT_FALSE(torch::allclose(context(7), context(8)));
    trained.eval();
    EXPECT_TRUE(torch::allclose(context(7), context(8)));
    const Tensor largest = at::matmul(query, key.transpose(1, 2)).argmax(-1);
    const Tensor taken = key.gather(1, largest.unsqueeze(-1).expand({4, 9, 4}));
    EXPECT_TRUE(torch::allclose(context(7), taken));
  }
}

// The noise is drawn on the CPU in the arithmetic's dtype, for queries of any dtype and device.
TEST(LearnedAttention, DrawsTheSameNoiseForEveryDtypeAndDevice) {
  torch::manual_seed(35);
  const Tensor query = torch::randn({2, 3, 4});
  LearnedAttention trained({.normaliser = "monotonic"}, sizes);
  const auto noise = [&](const Tensor& asking) {
    const AttentionSpec spec = trained.spec(asking, {.keys = 5, .seed = 7});
    return spec.bias.terms.back()->tensors().at(0);
  };
  const Tensor wanted = noise(query);
  for (const auto type : {torch::kHalf, torch::kBFloat16})
    EXPECT_TRUE(torch::equal(noise(query.to(type)), wanted));
  const at::Device device = reference::software_device(0);
  const Tensor there = noise(query.to(device));
  EXPECT_EQ(there.device(), device);
  EXPECT_TRUE(torch::equal(there.to(at::kCPU), wanted));
}

TEST(LearnedAttention, LooksMonotonicallyAtOneKeyAfterTraining) {
  torch::manual_seed(34);
  LearnedAttention trained({.bias = "offset", .normaliser = "monotonic"}, sizes);
  const Tensor query = torch::randn({3, 6, 4}) * 3, key = torch::randn({3, 5, 4});
  const auto weights = [&](uint64_t seed) {
    const AttentionSpec spec = trained.spec(query, {.keys = 5, .seed = seed});
    return attention_weights(query, key, attention(query, key, key, spec).lse, spec);
  };
  // Noise before the sigmoid makes the weights differ by seed in training.
  EXPECT_FALSE(torch::allclose(weights(1), weights(2)));
  EXPECT_TRUE(torch::allclose(weights(0), weights(0)));
  trained.eval();
  const Tensor hard = weights(1);
  EXPECT_TRUE(torch::equal(hard, weights(2)));
  EXPECT_TRUE(((hard == 0) | (hard == 1)).all().item<bool>());
  const Tensor positions = hard.argmax(-1), seen = hard.sum(-1);
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t i = 1; i < 6; ++i) {
      if (seen[b][i].item<double>() == 0) continue;
      EXPECT_GE(positions[b][i].item<int64_t>(), positions[b][i - 1].item<int64_t>());
    }
  }
}

TEST(LearnedAttention, RefusesWhatItCannotCompare) {
  const auto refusal = [](const AttentionChoices& choices, const AttentionSizes& given,
                          int64_t heads = 1) -> std::string {
    try {
      LearnedAttention(choices, given, heads);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({.score = "dot"}, {.query_depth = 3, .key_depth = 4}),
              HasSubstr("use general or additive"));
  EXPECT_THAT(refusal({.score = "location"}, {.query_depth = 3, .key_depth = 3}),
              HasSubstr("maximum number of keys"));
  EXPECT_THAT(refusal({}, sizes, 0), HasSubstr("0 heads"));
  EXPECT_EQ(refusal({.score = "general"}, {.query_depth = 3, .key_depth = 4}), "");
}

}  // namespace learned_attention_test
}  // namespace attend
