// Tests of the fused path against the composed one: every score x scope x bias x normaliser.
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "tests/ops/bias_cases.h"

namespace attend::reference {
namespace paths_test {

using at::Tensor;

constexpr double double_rounding = std::numeric_limits<double>::epsilon() / 2;
constexpr double float_rounding = std::numeric_limits<float>::epsilon() / 2;

// All inputs of one call, as a function of its tensors.
struct Case {
  std::string name;
  Tensors inputs;  // query, key, value, parameters, bias, and the sink if any
  std::function<AttentionResult(const Tensors&, Path)> run;
  double terms = 1;  // magnitude of the largest score
};

bool has_kernel(const ScoreRow& row) { return row.family.has_value(); }

Case make_case(const Problem& p, const ScopeCase& scope, const BiasCase* bias,
               const NormaliserRow& normaliser) {
  Case made;
  made.name =
      fmt::format("{}, {}, {}, {}, {} queries, {} keys", p.score.row().name, scope.name,
                  bias ? bias->name : "no bias", normaliser.name, p.query.size(2), p.key.size(2));
  made.inputs = {p.query, p.key, p.value};
  std::vector<std::string> names;
  for (const auto& [name, tensor] : p.score.parameters()) {
    names.push_back(name);
    made.inputs.push_back(tensor);
  }
  if (bias) made.inputs.insert(made.inputs.end(), bias->tensors.begin(), bias->tensors.end());
  const bool has_sink = normaliser.name == "softmax" && bias;
  if (has_sink) made.inputs.push_back(at::full({p.query.size(1)}, 0.5, p.query.options()));
  const auto bias_tensors = bias ? static_cast<int64_t>(bias->tensors.size()) : 0;
  made.run = [=, row = p.score.row().name, own_scope = scope.scope,
              make = bias ? bias->make : nullptr](const Tensors& x, Path path) {
    Parameters parameters;
    for (size_t i = 0; i < names.size(); ++i) parameters.emplace(names[i], x[3 + i]);
    const auto first = x.begin() + 3 + static_cast<int64_t>(names.size());
    return attention(x[0], x[1], x[2],
                     {.score = Score(row, parameters),
                      .scope = own_scope,
                      .bias = make ? make(Tensors(first, first + bias_tensors)) : Bias(),
                      .normaliser = normaliser.name,
                      .sink = has_sink ? x.back() : Tensor(),
                      .path = path});
  };
  const Tensor scores = attention_scores(
      p.query, p.key, {.score = p.score, .bias = bias ? bias->make(bias->tensors) : Bias()});
  if (scores.numel() > 0) made.terms = 1 + scores.abs().max().item<double>();
  return made;
}

// Context, lse and the gradients of a random combination of both, in the order of the inputs.
Tensors results_of(const Case& c, at::ScalarType dtype, Path path) {
  Tensors inputs;
  for (const Tensor& input : c.inputs) inputs.push_back(input.to(dtype));
  inputs = leaves(inputs);
  const auto result = c.run(inputs, path);
  auto generator = at::detail::createCPUGenerator(5);
  const auto weights = [&](const Tensor& like) {
    return at::randn(like.sizes(), generator, at::TensorOptions().dtype(at::kDouble)).to(dtype);
  };
  const Tensor lse = result.lse.masked_fill(result.lse.isinf(), 0.0);
  const Tensor combined =
      (result.context * weights(result.context)).sum() + (lse * weights(lse)).sum();
  Tensors all = {result.context.detach(), result.lse.detach()};
  for (const Tensor& gradient : gradients(combined, inputs, false)) all.push_back(gradient);
  return all;
}

double error_of(const Tensor& got, const Tensor& wanted) {
  if (got.sizes() != wanted.sizes()) return std::numeric_limits<double>::infinity();
  if (got.numel() == 0) return 0;
  const Tensor g = got.to(at::kDouble);
  const Tensor gap = at::where(g == wanted, at::zeros_like(wanted), (g - wanted).abs());
  return gap.isnan().any().item<bool>() ? std::numeric_limits<double>::infinity()
                                        : gap.max().item<double>();
}

double size_of(const Tensor& x) {
  const Tensor finite = x.masked_select(x.isfinite());
  return finite.numel() == 0 ? 0 : finite.abs().max().item<double>();
}

// With unit round-off u, a score of `terms` from D products has an error of (2 D + 16) u terms.
// Results sum at most Tq, Tk or Dv of these errors, relative to the result.
double room(const Case& c, const Tensor& wanted, double u) {
  const auto depth = static_cast<double>(c.inputs[0].size(3) + c.inputs[2].size(3));
  const auto length = static_cast<double>(c.inputs[0].size(2) + c.inputs[1].size(2));
  return u * (2 * depth + 16 + length) * c.terms * (1 + size_of(wanted));
}

void expect_paths_agree(const Case& c) {
  const Tensors wanted = results_of(c, at::kDouble, Path::composed);
  const Tensors fused = results_of(c, at::kDouble, Path::fused);
  const Tensors composed_float = results_of(c, at::kFloat, Path::composed);
  const Tensors fused_float = results_of(c, at::kFloat, Path::fused);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const char* kind = i == 0 ? "context" : i == 1 ? "lse" : "gradient";
    EXPECT_LE(error_of(fused[i], wanted[i]), 4 * room(c, wanted[i], double_rounding))
        << c.name << ", " << kind << " " << i;
    const double allowed = (i < 2 ? 2 : 3) * error_of(composed_float[i], wanted[i]) +
                           room(c, wanted[i], float_rounding);
    EXPECT_LE(error_of(fused_float[i], wanted[i]), allowed) << c.name << ", float " << kind << i;
  }
}

constexpr std::pair<int64_t, int64_t> lengths[] = {{1, 1},   {2, 3},  {3, 2},
                                                   {17, 17}, {3, 59}, {17, 2}};
constexpr int64_t depths[] = {1, 2, 3, 17};

class PathsOfScore : public testing::TestWithParam<ScoreRow> {};

TEST_P(PathsOfScore, Agree) {
  const ScoreRow& row = GetParam();
  if (!has_kernel(row)) {
    const Problem p = make_problem(row, {}, Given::all, false, at::kDouble, 1);
    EXPECT_THROW(attention(p.query, p.key, p.value, {.score = p.score, .path = Path::fused}),
                 Error);
    return;
  }
  // Sizes alternate, so that every pair of rows meets several of them.
  size_t turn = 0;
  for (const auto& [queries, keys] : lengths) {
    const int64_t depth = depths[turn % std::size(depths)];
    const Sizes sizes = {.batch = 2,
                         .heads = 2,
                         .key_heads = 1 + static_cast<int64_t>(turn % 2),
                         .queries = queries,
                         .keys = keys,
                         .query_depth = depth,
                         .key_depth = depth,
                         .attention_depth = depth + 1,
                         .value_depth = 1 + static_cast<int64_t>(turn % 3)};
    const Problem p = make_problem(row, sizes, turn % 3 == 0 ? Given::required : Given::all,
                                   turn % 2 == 0, at::kDouble, 100 + turn);
    const auto scopes = scope_cases(sizes);
    const auto biases = bias_cases(sizes, p.score.map_query(p.query).size(-1), 200 + turn);
    auto normalisers = fused_normalisers();
    // Factors keep only the dot family fused. Softpick divides roundings by a sum that may be near
    // 0, for which `room` has no bound. later_normalisers_test.cpp compares both.
    std::erase_if(normalisers, [](const NormaliserRow& row) {
      return row.factor != nullptr || row.name == "softpick";
    });
    for (size_t n = 0; n < scopes.size() * (biases.size() + 1); ++n) {
      // Scores that look back need one pass per query.
      if ((n + turn) % (row.map_past ? 47 : std::size(lengths)) != 0) continue;
      const size_t b = n / scopes.size();
      for (const NormaliserRow& normaliser : normalisers)
        expect_paths_agree(
            make_case(p, scopes[n % scopes.size()], b == 0 ? nullptr : &biases[b - 1], normaliser));
    }
    ++turn;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, PathsOfScore, testing::ValuesIn(score_table()),
                         [](const auto& info) { return test_name(std::string(info.param.name)); });

TEST(Paths, FusedTakesEveryStoredDtype) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const Tensor x = at::ones({2, 3}, dtype);
    EXPECT_EQ(attention(x, x, x, {.path = Path::fused}).context.scalar_type(), dtype);
  }
}

TEST(Paths, HalvesHaveGradientsOnBoth) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const double stored = dtype == at::kHalf ? 0x1p-11 : 0x1p-8;
    const Tensors inputs = {at::randn({2, 4, 5, 3}).to(dtype), at::randn({2, 2, 7, 3}).to(dtype),
                            at::randn({2, 2, 7, 6}).to(dtype), at::randn({4, 5, 7}).to(dtype)};
    Tensors found[2];
    for (const Path path : {Path::composed, Path::fused}) {
      const Tensors x = leaves(inputs);
      const auto result =
          attention(x[0], x[1], x[2], {.scope = causal(1), .bias = dense_bias(x[3]), .path = path});
      found[path == Path::fused] =
          gradients(result.context.to(at::kFloat).square().sum() + result.lse.sum(), x, false);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(found[1][i].scalar_type(), dtype);
      const Tensor wanted = found[0][i].to(at::kDouble);
      // The gradient of the context is rounded, and so are the gradients computed from it.
      EXPECT_LE(error_of(found[1][i], wanted), 4 * stored * (1 + size_of(wanted))) << i;
    }
  }
}

TEST(Paths, DropTheSameWeights) {
  const Tensor query = at::randn({2, 4, 9, 3}, at::kDouble),
               key = at::randn({2, 2, 33, 3}, at::kDouble);
  const Tensor value = at::eye(33, at::kDouble).expand({2, 2, 33, 33});
  for (const auto& [normaliser, bias] :
       {std::pair{"softmax", dense_bias(at::randn({33}, at::kDouble))}, {"sparsemax", Bias()}}) {
    AttentionSpec spec = {
        .scope = causal(20), .bias = bias, .normaliser = normaliser, .path = Path::composed};
    const Tensor weights = attention(query, key, value, spec).context;
    spec.dropout = {.probability = 0.3, .seed = 77};
    Tensors inputs[2], found[2];
    Tensor contexts[2];
    for (const Path path : {Path::composed, Path::fused}) {
      const bool fused = path == Path::fused;
      spec.path = path;
      inputs[fused] = leaves({query, key, value});
      contexts[fused] =
          attention(inputs[fused][0], inputs[fused][1], inputs[fused][2], spec).context;
      found[fused] = gradients(contexts[fused].pow(3).sum(), inputs[fused], false);
    }
    EXPECT_TRUE(at::allclose(contexts[0], contexts[1], 1e-12, 1e-13));
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(at::allclose(found[0][i], found[1][i], 1e-11, 1e-12)) << i;
    // Identity values show the weights: dropped or divided by 0.7.
    const Tensor kept = contexts[1] != 0;
    EXPECT_TRUE(at::allclose(contexts[1], weights / 0.7 * kept, 1e-12, 1e-13));
    const auto share = static_cast<double>(kept.sum().item<int64_t>()) /
                       static_cast<double>((weights != 0).sum().item<int64_t>());
    EXPECT_NEAR(share, 0.7, 0.07) << normaliser;
    spec.dropout.seed = 78;
    EXPECT_FALSE(at::equal(attention(query, key, value, spec).context, contexts[1]));
  }
}

TEST(Paths, OneTensorMayBeAllThree) {
  const Tensor x = at::randn({2, 3, 4}, at::kDouble);
  for (const Path path : {Path::fused, Path::composed}) {
    const Function function = [path](const Tensors& inputs) {
      return attention(inputs[0], inputs[0], inputs[0], {.scope = causal(), .path = path})
          .context.pow(3)
          .sum();
    };
    expect_gradients(function, {x}, {"x"});
    expect_second_gradients(function, {x}, {"x"});
  }
}

TEST(Paths, GradientsComeWhereTheyAreAskedFor) {
  const Tensor query = at::randn({3, 4}), key = at::randn({5, 4}), value = at::randn({5, 2});
  const Tensor bias = at::randn({3, 5}).set_requires_grad(true);
  const auto result = attention(query, key, value, {.bias = dense_bias(bias), .path = Path::fused});
  EXPECT_TRUE(result.context.requires_grad() && result.lse.requires_grad());
  // The gradient of lse with respect to a bias is the weight.
  const Tensor gradient = torch::autograd::grad({result.lse.sum()}, {bias})[0];
  const Tensor weights =
      attention_weights(query, key, result.lse.detach(), {.bias = dense_bias(bias.detach())});
  EXPECT_TRUE(at::allclose(gradient, weights, 1e-5, 1e-6));
  const auto plain = attention(query, key, value, {.path = Path::fused});
  EXPECT_FALSE(plain.context.requires_grad() || plain.lse.requires_grad());
}

TEST(Paths, StridesAndBroadcastsAreRead) {
  const Tensor packed = at::randn({2, 5, 3, 4, 6}, at::kDouble);  // batch, time, q/k/v, head, depth
  const Tensor query = packed.select(2, 0).transpose(1, 2);
  const Tensor key = packed.select(2, 1).transpose(1, 2);
  const Tensor value = packed.select(2, 2).narrow(-1, 1, 3).transpose(1, 2);
  const Tensor mask = (at::randn({5, 2, 5}) > 0).transpose(0, 1).unsqueeze(1);
  const Tensor one_query = query.narrow(2, 0, 1).expand({2, 4, 5, 6});
  const Tensor backwards = key.transpose(2, 3).contiguous().transpose(2, 3);
  for (const Tensor& q : {query, one_query}) {
    for (const Tensor& k : {key, backwards}) {
      const AttentionSpec fused = {.scope = dense_mask(mask), .path = Path::fused};
      const AttentionSpec composed = {.scope = dense_mask(mask), .path = Path::composed};
      const auto got = attention(q, k, value, fused), wanted = attention(q, k, value, composed);
      EXPECT_TRUE(at::allclose(got.context, wanted.context, 1e-12, 1e-13));
      EXPECT_TRUE(at::allclose(got.lse, wanted.lse, 1e-12, 1e-13));
    }
  }
}

TEST(Paths, ForwardModeIsComposed) {
  const Tensor x = at::randn({3, 4}, at::kDouble), tangent = at::randn({3, 4}, at::kDouble);
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  {
    const Tensor dual = at::_make_dual(x, tangent, level);
    const Tensor context = attention(dual, x, x).context;
    const Tensor slope = std::get<1>(at::_unpack_dual(context, level));
    const double h = 1e-6;
    const Tensor difference =
        (attention(x + h * tangent, x, x).context - attention(x - h * tangent, x, x).context) /
        (2 * h);
    EXPECT_TRUE(at::allclose(slope, difference, 1e-7, 1e-8));
    EXPECT_THROW(attention(dual, x, x, {.path = Path::fused}), Error);
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

}  // namespace paths_test
}  // namespace attend::reference
