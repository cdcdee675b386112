// Tests of biases against scalar rules, and of their derivatives on both paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/cpu_problem-inl.h"
#include "attend/ops/lower-inl.h"
#include "tests/ops/bias_cases.h"

namespace attend::reference {
namespace biases_test {

using at::Tensor;

constexpr Path paths[] = {Path::fused, Path::composed};

TEST(Biases, AreWhatTheirRulesSay) {
  for (const auto& [queries, keys] : {std::pair{1, 1}, {2, 3}, {5, 2}, {6, 6}, {17, 17}, {3, 17}}) {
    const Sizes sizes = {
        .batch = 2, .heads = 2, .queries = queries, .keys = keys, .query_depth = 3, .key_depth = 3};
    const Problem p =
        make_problem(score_row("scaled_dot"), sizes, Given::all, false, at::kDouble, 1);
    const Tensor scaled = p.query / std::sqrt(3.0);
    for (const BiasCase& bias : bias_cases(sizes, 3, 2)) {
      Tensor wanted = attention_scores(p.query, p.key, {.score = p.score}).clone();
      auto entries = wanted.accessor<double, 4>();
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t i = 0; i < queries; ++i)
            for (int64_t j = 0; j < keys; ++j)
              entries[b][h][i][j] += bias.value(scaled, b, h, i, j);
      const AttentionSpec spec = {.score = p.score, .bias = bias.make(bias.tensors)};
      // Sums of ten terms of a few hundred.
      EXPECT_TRUE(at::allclose(attention_scores(p.query, p.key, spec), wanted, 1e-13, 1e-12))
          << bias.name << ", " << queries << " queries, " << keys << " keys";
      const Tensor value = p.value.repeat_interleave(2, 1);
      for (const Path path : paths) {
        const auto result =
            attention(p.query, p.key, p.value,
                      {.score = p.score, .bias = bias.make(bias.tensors), .path = path});
        EXPECT_TRUE(
            at::allclose(result.context, at::matmul(wanted.softmax(-1), value), 1e-11, 1e-11))
            << bias.name << ", " << queries << " queries, " << keys << " keys";
        EXPECT_TRUE(at::allclose(result.lse, wanted.logsumexp(-1), 1e-12, 1e-11)) << bias.name;
      }
    }
  }
}

TEST(Biases, TakeQueriesOfTwoAndThreeAxes) {
  const Tensor three = at::randn({2, 3, 4}, at::kDouble);
  const Tensor dense = at::randn({2, 3, 3}, at::kDouble);
  const Tensor centres = at::rand({2, 3}, at::kDouble), widths = at::ones({}, at::kDouble);
  const Bias bias = dense_bias(dense) + gaussian(centres, widths);
  for (const Path path : paths) {
    const auto whole = attention(three, three, three, {.bias = bias, .path = path});
    for (int64_t b = 0; b < 2; ++b) {
      const Bias own = dense_bias(dense[b]) + gaussian(centres[b], widths);
      const auto alone = attention(three[b], three[b], three[b], {.bias = own, .path = path});
      EXPECT_TRUE(at::allclose(alone.context, whole.context[b], 1e-13, 1e-13));
    }
  }
}

// With respect to queries, keys, values, sink and bias tensors, with a soft cap and an lse in the
// loss.
TEST(GradientsOfBiases, MatchCentralDifferences) {
  const Sizes sizes = {.batch = 2,
                       .heads = 2,
                       .queries = 3,
                       .keys = 3,
                       .query_depth = 2,
                       .key_depth = 2,
                       .value_depth = 2};
  const Problem p = make_problem(score_row("scaled_dot"), sizes, Given::all, false, at::kDouble, 3);
  for (const BiasCase& bias : bias_cases(sizes, 2, 4)) {
    Tensors inputs = {p.query, p.key, p.value, at::tensor({0.3, -0.2}, at::kDouble)};
    inputs.insert(inputs.end(), bias.tensors.begin(), bias.tensors.end());
    std::vector<std::string> names = {"query", "key", "value", "sink"};
    for (size_t i = 0; i < bias.tensors.size(); ++i) names.push_back(bias.name + std::to_string(i));
    const Tensor weights = at::randn({2, 2, 3, 2}, at::kDouble);
    for (const Path path : paths) {
      SCOPED_TRACE(bias.name + (path == Path::fused ? " fused" : " composed"));
      const Function function = [&](const Tensors& x) {
        const auto result = attention(x[0], x[1], x[2],
                                      {.scope = causal() | prefix(2),
                                       .bias = bias.make(Tensors(x.begin() + 4, x.end())),
                                       .sink = x[3],
                                       .soft_cap = 1.5,
                                       .path = path});
        return (result.context * weights).sum() + result.lse.square().sum();
      };
      expect_gradients(function, inputs, names);
      expect_second_gradients(function, inputs, names);
    }
  }
}

TEST(AlibiSlopes, AreThePapers) {
  EXPECT_TRUE(at::equal(alibi_slopes(1), at::tensor({0x1p-8F})));
  EXPECT_TRUE(at::equal(alibi_slopes(8), at::tensor({0x1p-1F, 0x1p-2F, 0x1p-3F, 0x1p-4F, 0x1p-5F,
                                                     0x1p-6F, 0x1p-7F, 0x1p-8F})));
  // Six heads have the four slopes of four heads, then the first two odd ones of eight.
  EXPECT_TRUE(at::equal(alibi_slopes(6),
                        at::tensor({0x1p-2F, 0x1p-4F, 0x1p-6F, 0x1p-8F, 0x1p-1F, 0x1p-3F})));
}

TEST(DistanceBuckets, AreThePapers) {
  // 32 buckets up to 128: 8 exact ones per side, then at 8, 12, 16, 23, 32, 46, 64 and 91.
  const Tensor distance = at::tensor(
      {0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91, 127, 5000}, at::kLong);
  const Tensor bucket = at::tensor(
      {0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15}, at::kLong);
  EXPECT_TRUE(at::equal(distance_buckets(-distance, 32, true, 128), bucket));
  EXPECT_TRUE(at::equal(distance_buckets(distance, 32, true, 128),
                        bucket + (distance > 0).to(at::kLong) * 16));
  EXPECT_TRUE(at::equal(distance_buckets(-distance, 16, false, 128), bucket));
  EXPECT_TRUE(at::equal(distance_buckets(distance, 16, false, 128), at::zeros_like(distance)));
}

TEST(BiasTable, NamesAreUnique) {
  std::vector<std::string_view> names;
  for (const BiasRow& row : bias_table()) {
    EXPECT_THAT(names, testing::Not(testing::Contains(row.name)));
    EXPECT_FALSE(row.formula.empty() || row.source.empty() || row.parameters.empty()) << row.name;
    EXPECT_TRUE(row.syntax.starts_with(row.name)) << row.name;
    EXPECT_EQ(row.numbers.count > 0, row.syntax != row.name) << row.name;
    names.push_back(row.name);
  }
}

TEST(ParseBiases, ReadsPartsAndTheirNumbers) {
  const auto biases = parse_biases("alibi + buckets:32+grid:3x5 + relative_keys:4+sink");
  ASSERT_EQ(biases.size(), 5U);
  EXPECT_EQ(biases[0].row->kind, BiasKind::alibi);
  EXPECT_TRUE(biases[0].numbers.empty());
  EXPECT_EQ(biases[1].numbers, std::vector<int64_t>{32});
  EXPECT_EQ(table_axes(biases[1]), std::vector<int64_t>{32});
  EXPECT_EQ(biases[2].numbers, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(table_axes(biases[2]), (std::vector<int64_t>{5, 9}));
  EXPECT_EQ(table_axes(biases[3]), std::vector<int64_t>{9});
  EXPECT_EQ(biases[4].row->kind, BiasKind::sink);
  EXPECT_TRUE(has_bias(biases, BiasKind::grid));
  EXPECT_FALSE(has_bias(biases, BiasKind::dense));
  EXPECT_TRUE(parse_biases("").empty());
  EXPECT_TRUE(parse_biases("  ").empty());
  const auto far = parse_biases("buckets:256,300");
  EXPECT_EQ(far[0].numbers, (std::vector<int64_t>{256, 300}));
  EXPECT_EQ(table_axes(far[0]), std::vector<int64_t>{256});
  // Without numbers in the text the tensors determine the sizes.
  EXPECT_TRUE(parse_biases("dense + buckets")[1].numbers.empty());
}

TEST(ParseBiases, RefusesWhatIsNotWrittenSo) {
  for (const char* bad : {"alibi:3",
                          "alibi:",
                          "buckets:x",
                          "buckets:32x2",
                          "buckets:32,",
                          "buckets:32,9,9",
                          "grid:3,5",
                          "buckets:",
                          "grid:4",
                          "grid:4x",
                          "grid:x4",
                          "grid:4x4x4",
                          "+",
                          "alibi +",
                          "alibi alibi",
                          "buckets:-8",
                          "buckets:99999999999999999999",
                          "grid:100000x2",
                          "aliby",
                          "alibi+alibi"})
    EXPECT_THROW(parse_biases(bad), Error) << bad;
}

// Kernels read an expanded tensor without copying it, in any dtype and with a temperature. Only if
// it is differentiated, each repetition has its own number.
TEST(DenseBias, IsNotWrittenOutWhereItIsExpanded) {
  const Tensor x = at::randn({2, 3, 4, 2});
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor own = at::randn({1, 1, 1, 4}).to(type), q = x.to(type);
    const Tensor expanded = own.expand({2, 3, 4, 4});
    for (const char* normaliser : {"softmax", "temperature:2"}) {
      const AttentionSpec spec = {.bias = dense_bias(expanded), .normaliser = normaliser};
      const Lowered lowered = lower(q, q, q, spec);
      const KernelInputs inputs(lowered.parts, *lowered.spec);
      const auto& dense = inputs.parts[part::dense];
      EXPECT_EQ(dense.storage().nbytes(), 4 * sizeof(float)) << normaliser << " " << type;
      const auto wanted =
          attention(q, q, q, {.bias = dense_bias(expanded.contiguous()), .normaliser = normaliser});
      EXPECT_TRUE(at::equal(attention(q, q, q, spec).context, wanted.context));
    }
  }
  const Tensors of_row = leaves({at::randn({1, 1, 1, 4})});
  const auto sum_of = [&](const Tensor& bias) {
    return attention(x, x, x, {.bias = dense_bias(bias)}).context.pow(3).sum();
  };
  const Tensor expanded = of_row[0].detach().expand({2, 3, 4, 4}).set_requires_grad(true);
  const Tensors by_each = gradients(sum_of(expanded), {expanded}, false);
  const Tensors by_row = gradients(sum_of(of_row[0].expand({2, 3, 4, 4})), of_row, false);
  const Tensors by_copy = leaves({expanded.detach().contiguous()});
  EXPECT_TRUE(at::allclose(by_each[0], gradients(sum_of(by_copy[0]), by_copy, false)[0]));
  EXPECT_TRUE(at::allclose(by_row[0], by_each[0].sum({0, 1, 2}, true), 1e-4, 1e-5));
}

}  // namespace biases_test
}  // namespace attend::reference
