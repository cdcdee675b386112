// Tests of entmax with any alpha, softpick, scalable softmax, stick-breaking and top-k against
// loops and closed forms, and of their parameters' derivatives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "tests/ops/differences.h"

namespace attend::reference {
namespace later_normalisers_test {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr Path paths[] = {Path::composed, Path::fused};

Tensors inputs_of(int64_t queries, int64_t keys, at::ScalarType type = at::kDouble) {
  at::manual_seed(7);
  return {at::randn({2, 3, queries, 4}, type), at::randn({2, 3, keys, 4}, type),
          at::randn({2, 3, keys, 5}, type)};
}

Tensor weights_of(const Tensors& x, const AttentionSpec& spec) {
  const auto result = attention(x[0], x[1], x[2], spec);
  return attention_weights(x[0], x[1], result.lse, spec);
}

void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  EXPECT_TRUE(at::allclose(got, want, tolerance, tolerance))
      << (got - want).abs().max().item<double>();
}

// Three rows have normalisers of their own at these alphas.
TEST(Entmax, MeetsSparsemaxEntmax15AndSoftmax) {
  for (const int64_t keys : {1, 3, 59, 111}) {
    const Tensors x = inputs_of(7, keys);
    for (const Path path : paths) {
      const auto context = [&](const char* name) {
        return attention(x[0], x[1], x[2], {.scope = causal(2), .normaliser = name, .path = path})
            .context;
      };
      expect_near(context("entmax:2"), context("sparsemax"), 1e-13);
      expect_near(context("entmax:1.5"), context("entmax15"), 1e-13);
      // A weight p differs from the softmax by about (alpha - 1) p (ln p)^2 / 2.
      expect_near(context("entmax:1.001"), context("softmax"), 2e-2);
    }
  }
}

// Roots are found to the rounding of the scores: weights sum to 1.
TEST(Entmax, SumsToOneAtEveryAlpha) {
  for (const char* name : {"entmax:1.001", "entmax:1.05", "entmax:1.7", "entmax:2.4", "entmax:4"}) {
    for (const double spread : {1e-8, 1.0, 1e3, 1e15}) {
      const Tensor scores = at::randn({1, 1, 40, 59}, at::kDouble) * spread;
      for (const Path path : paths) {
        const Tensors x = {at::ones({1, 1, 40, 1}, at::kDouble),
                           at::zeros({1, 1, 59, 1}, at::kDouble),
                           at::ones({1, 1, 59, 1}, at::kDouble)};
        const AttentionSpec spec = {.bias = dense_bias(scores), .normaliser = name, .path = path};
        const Tensor sums = attention(x[0], x[1], x[2], spec).context;
        // At alpha 4 a rounding u of x = p^3 moves p by u / (3 p^2); the least p^3 is about u.
        const double tolerance = std::string_view(name) == "entmax:4" ? 1e-8 : 1e-12;
        expect_near(sums, at::ones_like(sums), tolerance);
      }
    }
  }
}

TEST(Entmax, DifferentiatesAlphaOnceAndTwice) {
  const Tensors x = inputs_of(5, 6);
  const Tensor upstream = at::randn({2, 3, 5, 5}, at::kDouble);
  const Tensor offsets = at::tensor({0, 3, 4, 4, 7, 9}, at::kLong);
  const Tensor edge_keys = at::tensor({0, 2, 5, 1, 0, 1, 3, 2, 4}, at::kLong);
  for (const double first : {1.1, 1.5, 1.9}) {
    Tensors given = x;
    given.push_back(at::tensor({first, first + 0.05, first + 0.08}, at::kDouble));
    for (const Path path : paths) {
      for (const Scope& scope : {causal(1), edges(offsets, edge_keys)}) {
        const Function function = [&](const Tensors& in) {
          const auto [context, lse] = attention(in[0], in[1], in[2],
                                                {.scope = scope,
                                                 .normaliser = {"entmax", 0, in[3]},
                                                 .dropout = {0.2, 3},
                                                 .path = path});
          const Tensor finite = lse.masked_fill(lse.isinf(), 0.0);
          return (context * upstream).sum() + finite.square().sum() / 10;
        };
        expect_gradients(function, given, {"query", "key", "value", "alpha"});
        expect_second_gradients(function, given, {"query", "key", "value", "alpha"});
      }
    }
  }
}

// The closed form subtracts numbers that are 1 / (alpha - 1)^2 times as large; the kernels do not.
TEST(Entmax, KeepsDigitsOfAlphasGradientNearOne) {
  const Tensors exact = inputs_of(33, 70);
  const Tensor upstream = at::randn({2, 3, 33, 5}, at::kDouble);
  const auto gradient = [&](at::ScalarType type) {
    const Tensor alpha = at::tensor({1.01, 1.03, 1.2}, type).set_requires_grad(true);
    const auto result = attention(exact[0].to(type), exact[1].to(type), exact[2].to(type),
                                  {.normaliser = {"entmax", 0, alpha}, .path = Path::fused});
    return gradients((result.context * upstream.to(type)).sum(), {alpha}, false)[0].to(at::kDouble);
  };
  const Tensor want = gradient(at::kDouble), got = gradient(at::kFloat);
  // 66 rows of 70 keys; alpha itself is rounded to 2^-24 of alpha - 1 = 0.01.
  EXPECT_TRUE(at::allclose(got, want, 1e-3, 1e-3)) << got << want;
}

TEST(Entmax, RefusesAlphasOutOfRange) {
  const Tensors x = inputs_of(2, 2);
  for (const double alpha : {1.0, 0.5, 4.5})
    EXPECT_THROW(attention(x[0], x[1], x[2],
                           {.normaliser = {"entmax", 0, at::full({}, alpha, at::kDouble)}}),
                 Error);
  for (const char* name :
       {"entmax:1", "entmax:5", "entmax:x", "top_k:0", "top_k:1.5", "scalable:0", "softpick:2"})
    EXPECT_THROW(Normaliser{name}, Error) << name;
  EXPECT_THROW(Normaliser("softmax", 0, at::ones({})), Error);
  EXPECT_THROW(Normaliser("entmax:1.5", 0, at::ones({})), Error);
}

// All results from the scores of one row, with loops.
TEST(Softpick, IsItsFormulaAtEveryMagnitude) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double unit = type == at::kDouble ? 0x1p-52 : 0x1p-23;
    for (const double spread : {1e-12, 1e-6, 1e-3, 1.0, 50.0, 1e4}) {
      for (const int64_t keys : {1, 3, 59, 111}) {
        const Tensor scores = at::randn({9, keys}, at::kDouble) * spread;
        scores[0].abs_().neg_();
        if (keys > 2) scores.select(1, 1).fill_(-infinity);
        const Tensor stored = scores.to(type), zero = at::zeros({9, 1}, type);
        for (const Path path : paths) {
          const AttentionSpec spec = {
              .bias = dense_bias(stored), .normaliser = "softpick", .path = path};
          const Tensor key = at::zeros({keys, 1}, type);
          const auto result = attention(zero, key, at::eye(keys, type), spec);
          const Tensor kept = stored.to(at::kDouble);
          const Tensor top = kept.amax(-1, true).clamp_min(0.0);
          const Tensor raw = at::where(kept < 1, kept.clamp_max(1.0).expm1() * (-top).exp(),
                                       (kept - top).exp() - (-top).exp())
                                 .masked_fill(kept == -infinity, 0.0);
          const Tensor sum = raw.abs().sum(-1, true) + 1e-8 * (-top).exp();
          // Powers of scores up to 1e4 have relative errors of 1e4 units.
          const double tolerance = 40 * unit * std::max(1.0, spread);
          expect_near(result.context.to(at::kDouble), raw.relu() / sum, tolerance);
          EXPECT_TRUE(result.context[0].eq(0).all().item<bool>());
          const Tensor lse = (sum.log() + top).squeeze(-1);
          const bool none = keys == 1 && spread == 0;
          if (!none) expect_near(result.lse.to(at::kDouble), lse, 40 * unit * 30);
        }
      }
    }
  }
}

// Few queries divide their keys among tasks, which add the floor once.
TEST(Softpick, OfManyKeysForOneQueryIsTheComposedOne) {
  Tensors x = inputs_of(1, 5000);
  for (const double spread : {1e-6, 1.0}) {
    x[0] = at::randn({2, 3, 1, 4}, at::kDouble) * spread;
    Tensor contexts[2];
    for (const size_t n : {0, 1})
      contexts[n] =
          attention(x[0], x[1], x[2], {.normaliser = "softpick", .path = paths[n]}).context;
    expect_near(contexts[1], contexts[0], 1e-13);
  }
}

Tensor counts_by_mask(const Scope& scope, int64_t queries, int64_t keys) {
  const Tensor mask = scope_mask(scope, 2, 3, queries, keys, at::kCPU);
  return mask.defined() ? mask.expand({2, 3, queries, keys}).sum(-1).to(at::kDouble)
                        : at::full({2, 3, queries}, static_cast<double>(keys), at::kDouble);
}

TEST(Scalable, MultipliesScoresByTheLogarithmOfTheKeysInScope) {
  const int64_t queries = 71, keys = 90;
  const Tensors x = inputs_of(queries, keys);
  const Tensor mask = at::rand({queries, keys}) < 0.4;
  const Tensor s = at::tensor({0.43, 0.2, -0.1}, at::kDouble);
  const Tensor bias = at::randn({queries, keys}, at::kDouble);
  for (const Scope& scope :
       {all_keys(), causal(), causal(-3), window(9, 3), key_lengths(at::tensor({40, 3}, at::kLong)),
        causal() & key_lengths(at::tensor({40, 3}, at::kLong)), dense_mask(mask),
        window(2, 2) | prefix(5)}) {
    const Tensor n = counts_by_mask(scope, queries, keys);
    for (const char* name : {"scalable", "scalable:8"}) {
      const Tensor r = std::string_view(name) == "scalable"
                           ? s.view({1, 3, 1}) * n.clamp_min(1.0).log()
                           : 1 + s.view({1, 3, 1}) * (n / 8).floor().log1p();
      const auto want =
          attention(x[0] * r.unsqueeze(-1), x[1], x[2], {.scope = scope, .bias = dense_bias(bias)});
      for (const Path path : paths) {
        const auto got = attention(
            x[0], x[1], x[2],
            {.scope = scope, .bias = dense_bias(bias), .normaliser = {name, 0, s}, .path = path});
        expect_near(got.context, want.context, 1e-12);
      }
      // A score of another family is multiplied itself.
      const auto additive = [&](const Normaliser& normaliser) {
        return AttentionSpec{.score = Score("additive", {{"v", at::ones({4}, at::kDouble)}}),
                             .scope = scope,
                             .normaliser = normaliser};
      };
      const Tensor plain = attention_scores(x[0], x[1], additive("softmax"));
      const Tensor scaled = attention_scores(x[0], x[1], additive({name, 0, s}));
      expect_near(scaled, (plain * r.unsqueeze(-1)).masked_fill(plain == -infinity, -infinity),
                  1e-12);
    }
  }
}

TEST(Scalable, StepsEqualTheSequenceAndItsScaleHasAGradient) {
  const Tensors x = inputs_of(9, 9);
  const Tensor s = at::tensor({0.43, 0.2, 1.1}, at::kDouble);
  const Normaliser normaliser("scalable", 0, s);
  const auto whole = attention(x[0], x[1], x[2], {.scope = causal(), .normaliser = normaliser});
  for (const int64_t i : {0, 1, 8}) {
    const auto step =
        attention(x[0].narrow(2, i, 1), x[1].narrow(2, 0, i + 1), x[2].narrow(2, 0, i + 1),
                  {.scope = causal(), .normaliser = normaliser, .align = Align::last});
    expect_near(step.context, whole.context.narrow(2, i, 1), 1e-14);
  }
  Tensors given = x;
  given.push_back(s);
  for (const Path path : paths) {
    const Function function = [&](const Tensors& in) {
      const auto [context, lse] =
          attention(in[0], in[1], in[2],
                    {.scope = causal(), .normaliser = {"scalable", 0, in[3]}, .path = path});
      return context.square().sum() + lse.square().sum();
    };
    expect_gradients(function, given, {"query", "key", "value", "scale"});
    expect_second_gradients(function, given, {"query", "key", "value", "scale"});
  }
}

TEST(StickBreaking, BreaksFromTheLastKey) {
  const Tensors x = inputs_of(7, 7);
  for (const Path path : paths) {
    const AttentionSpec spec = {.scope = causal(-1) & key_lengths(at::tensor({7, 4}, at::kLong)),
                                .normaliser = "stick_breaking",
                                .path = path};
    const Tensor weights = weights_of(x, spec);
    const Tensor scores = attention_scores(x[0], x[1], spec);
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < 7; ++i) {
        double left = 1;
        for (int64_t j = 6; j >= 0; --j) {
          const double z = scores[b][1][i][j].item<double>();
          const double share = std::isinf(z) ? 0 : 1 / (1 + std::exp(-z));
          EXPECT_NEAR(weights[b][1][i][j].item<double>(), share * left, 1e-14);
          left *= 1 - share;
        }
        EXPECT_NEAR(weights[b][1][i].sum().item<double>(), 1 - left, 1e-14);
      }
    }
    EXPECT_TRUE(weights.select(2, 0).eq(0).all().item<bool>());
    const Function function = [&](const Tensors& in) {
      return attention(in[0], in[1], in[2], spec).context.pow(3).sum();
    };
    expect_gradients(function, x, {"query", "key", "value"});
    expect_second_gradients(function, x, {"query", "key", "value"});
  }
}

// Many keys that each take little, in one split of the keys or in several: the float paths add
// logarithms, and a product of factors near 1 would lose their digits.
TEST(StickBreaking, OfManyKeysIsExact) {
  const int64_t keys = 20000;
  at::manual_seed(3);
  const Tensor bias = at::randn({1, keys}, at::kDouble) - 12;
  const Tensor value = at::randn({keys, 3}, at::kDouble) + 1;
  for (const int64_t queries : {1, 7}) {
    const auto context = [&](at::ScalarType type, Path path) {
      return attention(
                 at::zeros({queries, 1}, type), at::zeros({keys, 1}, type), value.to(type),
                 {.bias = dense_bias(bias.to(type)), .normaliser = "stick_breaking", .path = path})
          .context.to(at::kDouble);
    };
    const Tensor want = context(at::kDouble, Path::composed);
    expect_near(context(at::kDouble, Path::fused), want, 1e-12);
    // Scores of -12 have an error of 2^-21, and so do the logarithms of weights.
    expect_near(context(at::kFloat, Path::fused), want, 0x1p-20);
  }
}

// Large scores of either sign: one key takes the whole stick.
TEST(StickBreaking, StaysFiniteForHugeScores) {
  const Tensor scores = at::tensor({1e4, -1e4, 1e30, -1e30}, at::kDouble).view({1, 4});
  const Tensor zero = at::zeros({1, 1}, at::kDouble), keys = at::zeros({4, 1}, at::kDouble);
  for (const Path path : paths) {
    const auto result =
        attention(zero, keys, at::eye(4, at::kDouble),
                  {.bias = dense_bias(scores), .normaliser = "stick_breaking", .path = path});
    EXPECT_TRUE(
        at::equal(result.context, at::tensor({0.0, 0.0, 1.0, 0.0}, at::kDouble).view({1, 4})));
  }
}

TEST(TopK, KeepsEqualScoresTogether) {
  const Tensor scores = at::tensor({1.0, 3.0, 2.0, 2.0, -5.0, 2.0}, at::kDouble).view({1, 6});
  const Tensor zero = at::zeros({1, 1}, at::kDouble), keys = at::zeros({6, 1}, at::kDouble);
  for (const Path path : paths) {
    const auto kept = [&](const char* name) {
      return attention(zero, keys, at::eye(6, at::kDouble),
                       {.bias = dense_bias(scores), .normaliser = name, .path = path})
          .context.gt(0)
          .sum()
          .item<int64_t>();
    };
    EXPECT_EQ(kept("top_k:1"), 1);
    EXPECT_EQ(kept("top_k:2"), 4);
    EXPECT_EQ(kept("top_k:4"), 4);
    EXPECT_EQ(kept("top_k:5"), 5);
    EXPECT_EQ(kept("top_k:9"), 6);
  }
}

TEST(TopK, IsTheSoftmaxOfTheLargest) {
  for (const int64_t keys : {1, 3, 59, 111}) {
    const Tensors x = inputs_of(33, keys);
    const AttentionSpec plain = {.scope = causal(1)};
    const Tensor scores = attention_scores(x[0], x[1], plain);
    const Tensor least =
        std::get<0>(scores.sort(-1, true)).narrow(-1, std::min<int64_t>(5, keys) - 1, 1);
    const Tensor weights = scores.masked_fill(scores < least, -infinity).softmax(-1);
    for (const Path path : paths)
      expect_near(weights_of(x, {.scope = causal(1), .normaliser = "top_k:5", .path = path}),
                  weights, 1e-13);
  }
}

}  // namespace later_normalisers_test
}  // namespace attend::reference
