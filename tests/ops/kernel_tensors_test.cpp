// Tests of tensors with special storage and of mixed dtypes.
#include "attend/ops/kernel_tensors.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <cmath>
#include <limits>
#include <memory>

#include "tests/ops/bias_cases.h"
#include "tests/ops/misuse.h"
#include "tests/support/autocast.h"

namespace attend::reference {
namespace kernel_tensors_test {

using at::Tensor;

constexpr Sizes sizes = {.batch = 2,
                         .heads = 2,
                         .key_heads = 1,
                         .queries = 5,
                         .keys = 7,
                         .query_depth = 3,
                         .key_depth = 3,
                         .attention_depth = 3};
constexpr Path paths[] = {Path::automatic, Path::composed};

Problem problem_of(const ScoreRow& row, at::ScalarType type) {
  return make_problem(row, sizes, Given::all, false, type, 11);
}

// The same numbers, stored negated with the mark of a lazy negation.
Tensor negated_later(const Tensor& x) { return at::_neg_view(x.neg()); }

Score with_parameters(const Score& score, const std::function<Tensor(const Tensor&)>& change) {
  Parameters changed;
  for (const auto& [name, x] : score.parameters()) changed.emplace(name, change(x));
  return Score(score.row().name, changed);
}

TEST(KernelTensors, AreReadAsTheyAre) {
  const Tensor x = at::randn({3, 4});
  ASSERT_TRUE(negated_later(x).is_neg());
  EXPECT_TRUE(at::equal(contiguous_numbers(negated_later(x)), x));
  EXPECT_TRUE(at::equal(contiguous_numbers(negated_later(x).t()), x.t()));
  expect_errors({{[&] { pointer_of<float>(x.to(at::kBFloat16)); },
                  "a kernel that reads Float was given BFloat16"},
                 {[&] { pointer_of<int64_t>(x); }, "a kernel that reads Long was given Float"},
                 {[&] { pointer_of<float>(negated_later(x)); }, "negated later"}});
  EXPECT_EQ(pointer_of<float>(Tensor()), nullptr);
}

// Lazy negation of any input: parameters, biases, sinks, lse and gradients included.
TEST(KernelTensors, MayBeNegatedLater) {
  for (const ScoreRow& row : score_table()) {
    if (row.features != Features::any) continue;
    SCOPED_TRACE(row.name);
    const Problem p = problem_of(row, at::kDouble);
    const Tensor sink = at::randn({2}, at::kDouble),
                 upstream = at::randn({2, 2, 5, 2}, at::kDouble);
    for (const BiasCase& bias : bias_cases(sizes, p.score.map_query(p.query).size(-1), 3)) {
      const auto results = [&](const std::function<Tensor(const Tensor&)>& change) {
        Tensors inputs = {p.query, p.key, p.value, sink}, own;
        inputs.insert(inputs.end(), bias.tensors.begin(), bias.tensors.end());
        for (const Tensor& x : inputs) own.push_back(change(x).detach().requires_grad_());
        AttentionSpec spec = {.score = with_parameters(p.score, change),
                              .bias = bias.make({own.begin() + 4, own.end()}),
                              .sink = own[3]};
        const auto [context, lse] = attention(own[0], own[1], own[2], spec);
        Tensors all = {context, lse};
        const at::NoGradGuard no_gradient;
        all.push_back(attention_weights(own[0], own[1], change(lse.detach()), spec));
        for (const Tensor& g :
             torch::autograd::grad({context, lse}, own,
                                   {change(upstream), change(upstream.sum(-1))}, {}, false, true))
          all.push_back(g.defined() ? g : at::zeros({}));
        return all;
      };
      const Tensors wanted = results([](const Tensor& x) { return x; });
      const Tensors found = results(negated_later);
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_TRUE(at::allclose(found[i], wanted[i], 1e-12, 1e-13)) << bias.name << " " << i;
    }
  }
}

// They have the queries' 16-bit dtype, or float32 like the arithmetic.
TEST(Dtypes, OfBiasesSinksAndParametersAreThoseOfTheQueriesOrTheArithmetic) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const ScoreRow& row : score_table()) {
      if (row.features != Features::any) continue;
      SCOPED_TRACE(row.name);
      const Problem p = problem_of(row, at::kFloat);
      for (const BiasCase& bias : bias_cases(sizes, p.score.map_query(p.query).size(-1), 3)) {
        const auto stored = [&](const Tensor& x) { return x.to(type); };
        const auto rounded = [&](const Tensor& x) { return x.to(type).to(at::kFloat); };
        const auto spec_of = [&](const std::function<Tensor(const Tensor&)>& change, Path path) {
          Tensors own;
          for (const Tensor& x : bias.tensors) own.push_back(change(x.to(at::kFloat)));
          return AttentionSpec{.score = with_parameters(p.score, change),
                               .bias = bias.make(own),
                               .sink = change(at::full({2}, 0.5)),
                               .path = path};
        };
        for (const Path path : paths) {
          const Tensor query = stored(p.query), key = stored(p.key), value = stored(p.value);
          const auto found = attention(query, key, value, spec_of(stored, path));
          const auto beside = attention(query, key, value, spec_of(rounded, path));
          const auto wanted = attention(rounded(query), rounded(key), rounded(value),
                                        spec_of(rounded, Path::composed));
          // Widened numbers are exact; only the context is rounded when stored.
          EXPECT_EQ(found.context.scalar_type(), type);
          EXPECT_TRUE(at::equal(found.context, beside.context)) << bias.name;
          EXPECT_TRUE(at::equal(found.lse, beside.lse)) << bias.name;
          EXPECT_TRUE(at::allclose(found.lse, wanted.lse, 2e-2, 2e-2)) << bias.name;
          EXPECT_TRUE(at::allclose(found.context.to(at::kFloat), wanted.context, 2e-2, 2e-2))
              << bias.name;
        }
      }
    }
  }
}

Tensors results_of(const Problem& p, const BiasCase& bias, std::string_view normaliser, Path path,
                   bool autocast) {
  Tensors inputs = {p.query, p.key, p.value};
  for (const Tensor& x : bias.tensors) inputs.push_back(x.to(at::kFloat));
  inputs = leaves(inputs);
  const AttentionSpec spec = {.score = p.score,
                              .bias = bias.make({inputs.begin() + 3, inputs.end()}),
                              .normaliser = normaliser,
                              .path = path};
  Tensors all;
  {
    const auto on = autocast ? std::make_unique<test::Autocast>() : nullptr;
    const auto [context, lse] = attention(inputs[0], inputs[1], inputs[2], spec);
    all = {context, lse, attention_scores(inputs[0], inputs[1], spec)};
    const at::NoGradGuard no_gradient;
    all.push_back(attention_weights(inputs[0], inputs[1], lse, spec));
    all.push_back(attention_entropy(inputs[0], inputs[1], lse, spec));
  }
  for (const Tensor& gradient : gradients(all[0].square().sum() + all[1].sum(), inputs, false))
    all.push_back(gradient);
  return all;
}

TEST(Autocast, ChangesNothing) {
  for (const ScoreRow& row : score_table()) {
    if (row.features != Features::any) continue;
    SCOPED_TRACE(row.name);
    const Problem p = problem_of(row, at::kFloat);
    for (const BiasCase& bias : bias_cases(sizes, p.score.map_query(p.query).size(-1), 3)) {
      for (const Path path : paths) {
        const bool in_order = path == Path::automatic && bias.name == "dense";
        for (const char* normaliser : {"softmax", in_order ? "monotonic" : "sigmoid"}) {
          const Tensors wanted = results_of(p, bias, normaliser, path, false);
          const Tensors found = results_of(p, bias, normaliser, path, true);
          for (size_t i = 0; i < wanted.size(); ++i) {
            EXPECT_EQ(found[i].scalar_type(), at::kFloat);
            EXPECT_TRUE(at::equal(found[i], wanted[i])) << bias.name << " " << normaliser << i;
          }
        }
      }
    }
  }
}

// Layers return 16 bits, but the query after a normalisation is float32.
TEST(Autocast, TakesTheWidestOfSeveralDtypes) {
  const Tensor query = at::randn({1, 2, 5, 3}), key = at::randn({1, 2, 7, 3}).to(at::kBFloat16);
  const Tensor value = at::randn({1, 2, 7, 4}).to(at::kBFloat16), w = at::randn({3, 3});
  const AttentionSpec spec = {.score = Score("general", {{"W", w}}),
                              .bias = alibi(alibi_slopes(2).to(at::kBFloat16))};
  expect_errors({{[&] { attention(query, key, value, spec); },
                  "key has dtype BFloat16, query Float; they must match"}});
  const test::Autocast on;
  const auto found = attention(query, key, value, spec);
  const auto wanted = attention(query, key.to(at::kFloat), value.to(at::kFloat), spec);
  EXPECT_EQ(found.context.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(found.context, wanted.context));
  EXPECT_TRUE(at::equal(attention_weights(query, key, found.lse, spec),
                        attention_weights(query, key.to(at::kFloat), found.lse, spec)));
  EXPECT_EQ(attention(key, key, value, spec).context.scalar_type(), at::kBFloat16);
}

TEST(Autocast, LeavesMapsOfAScoreInFloat) {
  const Score score("general", {{"W", at::randn({3, 3})}});
  const Tensor x = at::randn({1, 2, 5, 3});
  const Tensor wanted = score.map_query(x), narrow = score.map_query(x.to(at::kBFloat16));
  EXPECT_EQ(narrow.scalar_type(), at::kFloat);
  const test::Autocast on;
  EXPECT_TRUE(at::equal(score.map_query(x), wanted));
  EXPECT_TRUE(at::equal(score.map_query(x.to(at::kBFloat16)), narrow));
}

// The composed twin computes first gradients with create_graph; inputs may depend on each other.
// other.
TEST(SecondDerivatives, LeaveTheFirstAsTheyAre) {
  const auto gradient = [](bool create_graph, bool autocast) {
    const Tensor x = at::ones({1, 4, 3}).cumsum(1).sin().requires_grad_();
    const Tensor w = at::eye(3).mul(0.5);
    const Tensor key = at::tanh(x);
    const auto result = attention(x, key, key * x, {.score = Score("general", {{"W", w}})});
    const Tensor value = result.context.square().sum();
    const auto on = autocast ? std::make_unique<test::Autocast>() : nullptr;
    return gradients(value, {x}, create_graph)[0];
  };
  const Tensor wanted = gradient(false, false);
  // Rounding of sums of 4 terms near 1 in another order.
  EXPECT_TRUE(at::allclose(gradient(true, false), wanted, 1e-5, 1e-6));
  // LibTorch computes the products of the map's backward in bfloat16.
  EXPECT_TRUE(at::allclose(gradient(false, true), wanted, 3e-2, 3e-2));
  EXPECT_TRUE(at::allclose(gradient(true, true), wanted, 3e-2, 3e-2));
}

TEST(Entropy, IsNoNumberWhereAWeightIsNegative) {
  const Tensor query = at::tensor({1.0, -1.0, 2.0}).view({3, 1}),
               key = at::tensor({0.5, 2.0}).view({2, 1});
  for (const Path path : paths) {
    const AttentionSpec spec = {.score = "dot", .normaliser = "none", .path = path};
    const Tensor entropy = attention_entropy(query, key, at::zeros({3}), spec);
    EXPECT_TRUE(at::equal(entropy.isnan(), at::tensor({0, 1, 0}).to(at::kBool)));
    // -0.5 ln 0.5 - 2 ln 2 and -1 ln 1 - 4 ln 4
    EXPECT_NEAR(entropy[0].item<double>(), -1.5 * std::log(2.0), 1e-6);
    EXPECT_NEAR(entropy[2].item<double>(), -4 * std::log(4.0), 1e-5);
  }
}

TEST(Gaussian, OfTheLeastWidthIsItsCentre) {
  const Tensor one = at::zeros({1, 1}), value = at::tensor({5.0F, 1.0F, 7.0F}).view({3, 1});
  for (const float width : {5e-20F, 1e-18F, 1e-10F})
    for (const Path path : paths) {
      const Tensor centre = at::ones({1}).requires_grad_();
      const Tensor widths = at::full({1}, width).requires_grad_();
      const Tensor context =
          attention(one, at::zeros({3, 1}), value, {.bias = gaussian(centre, widths), .path = path})
              .context;
      EXPECT_EQ(context.item<float>(), 1);
      for (const Tensor& gradient : gradients(context.sum(), {centre, widths}, false))
        EXPECT_EQ(gradient.item<float>(), 0);
    }
}

// Float32 error of the gradients of a centre and a width, [queries] each. Each key's share has four
// roundings, and the rounding of its score changes its weight. Shares of a centre far from its keys
// are large and cancel.
Tensors rounding_of_gradients(const Tensor& weights, const Tensor& toward, const Tensor& distance,
                              const Tensor& width) {
  const Tensor widths_away = distance / width;
  const Tensor mean = (weights * toward).sum(-1, true);
  const Tensor share = weights * (toward.abs() + mean.abs()) * (16 + widths_away.square()) / width;
  const double rounding = 4 * std::numeric_limits<float>::epsilon();
  return {rounding * (share * widths_away.abs()).sum(-1),
          rounding * (share * widths_away.square()).sum(-1)};
}

TEST(Gaussian, GradientsInFloat32AreExactToRounding) {
  const at::Generator generator = at::detail::createCPUGenerator(5);
  const auto random = [&](at::IntArrayRef shape) {
    return at::randn(shape, generator).to(at::kDouble);
  };
  const Tensor query = random({130, 16}), key = random({200, 16}), value = random({200, 16}),
               outward = random({130, 16}), shift = random({130});
  for (const double centre : {-100.0, 100.0, 350.0})
    for (const double width : {1.0, 20.0}) {
      SCOPED_TRACE(fmt::format("centre {}, width {}", centre, width));
      const Tensor centres = shift + centre, widths = shift.abs() + width;
      const auto gradients_in = [&](at::ScalarType type, Path path) {
        const Tensor c = centres.to(type).requires_grad_(), w = widths.to(type).requires_grad_();
        const AttentionSpec spec = {.bias = gaussian(c, w), .path = path};
        const Tensor context =
            attention(query.to(type), key.to(type), value.to(type), spec).context;
        return gradients((context * outward.to(type)).sum(), {c, w}, false);
      };
      const AttentionSpec whole = {.bias = gaussian(centres, widths), .path = Path::composed};
      const Tensor lse = attention(query, key, value, whole).lse;
      const Tensor weights = attention_weights(query, key, lse, whole);
      const Tensors rounding = rounding_of_gradients(
          weights, outward.mm(value.t()),
          at::arange(200, at::kDouble).unsqueeze(0) - centres.unsqueeze(-1), widths.unsqueeze(-1));
      const auto exact = gradients_in(at::kDouble, Path::composed);
      for (const Path path : paths) {
        const auto found = gradients_in(at::kFloat, path);
        for (size_t i = 0; i < exact.size(); ++i) {
          const Tensor error = (found[i].to(at::kDouble) - exact[i]).abs();
          EXPECT_TRUE(error.le(rounding[i] + 1e-30).all().item<bool>())
              << (i == 0 ? "centres" : "widths") << ": " << (error / rounding[i]).max();
        }
      }
    }
}

}  // namespace kernel_tensors_test
}  // namespace attend::reference
