#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attend/ops/attention.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace top_blocks_test {

using at::Tensor;

Tensor random(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

struct Problem {
  Tensor query, key, value;
};

Problem problem_of(int64_t length) {
  at::manual_seed(length);
  return {random({2, 4, length, 5}), random({2, 2, length, 5}), random({2, 2, length, 3})};
}

// Keys that query i of a head sees: Lu et al. 2025, eq. 5-8, by plain loops.
std::vector<bool> seen_by(const Tensor& query, const Tensor& keys, int64_t i, int64_t block,
                          int64_t count) {
  const int64_t own = i / block, depth = keys.size(1);
  std::vector<double> products;
  for (int64_t b = 0; b < own; ++b) {
    double sum = 0;
    for (int64_t j = b * block; j < (b + 1) * block; ++j)
      for (int64_t a = 0; a < depth; ++a)
        sum += query[i][a].item<double>() * keys[j][a].item<double>();
    products.push_back(sum / static_cast<double>(block));
  }
  std::vector<int64_t> order(products.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return products[static_cast<size_t>(a)] > products[static_cast<size_t>(b)];
  });
  std::vector<bool> blocks(static_cast<size_t>(own + 1));
  blocks.back() = true;
  for (size_t n = 0; n < order.size() && static_cast<int64_t>(n) + 1 < count; ++n)
    blocks[static_cast<size_t>(order[n])] = true;
  std::vector<bool> seen(static_cast<size_t>(keys.size(0)));
  for (int64_t j = 0; j <= i; ++j)
    seen[static_cast<size_t>(j)] = blocks[static_cast<size_t>(j / block)];
  return seen;
}

Tensor mask_of(const Problem& problem, int64_t block, int64_t count) {
  const int64_t length = problem.query.size(2);
  Tensor mask = at::zeros({2, 4, length, length}, at::kBool);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = 0; i < length; ++i) {
        const auto seen = seen_by(problem.query[b][h], problem.key[b][h / 2], i, block, count);
        for (int64_t j = 0; j < length; ++j)
          mask[b][h][i][j] = static_cast<bool>(seen[static_cast<size_t>(j)]);
      }
  return mask;
}

void expect_close(const AttentionResult& got, const AttentionResult& want) {
  EXPECT_TRUE(at::allclose(got.context, want.context, 1e-11, 1e-12));
  EXPECT_TRUE(at::allclose(got.lse, want.lse, 1e-11, 1e-12));
}

TEST(TopBlocks, AreThePapersBlocks) {
  for (const int64_t length : {1, 3, 17, 40})
    for (const auto& [block, count] :
         {std::pair<int64_t, int64_t>{4, 3}, {7, 2}, {4, 1}, {64, 5}}) {
      SCOPED_TRACE(testing::Message() << length << ' ' << block << ' ' << count);
      const Problem p = problem_of(length);
      AttentionSpec chosen{.scope = causal() & top_blocks(block, count)};
      AttentionSpec given{.scope = dense_mask(mask_of(p, block, count))};
      for (const Path path : {Path::fused, Path::composed}) {
        chosen.path = given.path = path;
        const AttentionResult got = attention(p.query, p.key, p.value, chosen);
        expect_close(got, attention(p.query, p.key, p.value, given));
        EXPECT_TRUE(at::allclose(attention_weights(p.query, p.key, got.lse, chosen),
                                 attention_weights(p.query, p.key, got.lse, given)));
      }
    }
}

TEST(TopBlocks, HaveTheGradientsOfTheirKeys) {
  const Problem p = problem_of(21);
  const Tensor direction = random({2, 4, 21, 3});
  const auto gradients = [&](const Scope& scope, Path path) {
    std::vector<Tensor> inputs;
    for (const Tensor& x : {p.query, p.key, p.value}) inputs.push_back(x.clone().requires_grad_());
    AttentionSpec spec{.scope = scope};
    spec.path = path;
    (attention(inputs[0], inputs[1], inputs[2], spec).context * direction).sum().backward();
    std::vector<Tensor> result;
    for (const Tensor& x : inputs) result.push_back(x.grad());
    return result;
  };
  for (const Path path : {Path::fused, Path::composed}) {
    const auto got = gradients(causal() & top_blocks(4, 3), path);
    const auto want = gradients(dense_mask(mask_of(p, 4, 3)), path);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::allclose(got[i], want[i], 1e-10, 1e-12)) << i;
  }
}

// Query t chooses among the keys up to its own, as decoding does.
TEST(TopBlocks, StepsAreTheWholeSequence) {
  const Problem p = problem_of(23);
  const Scope scope = causal() & top_blocks(4, 3);
  const AttentionResult whole = attention(p.query, p.key, p.value, {.scope = scope});
  for (const int64_t t : {0, 3, 4, 15, 22}) {
    const Scope step = shifted_keys(shifted(scope, t), 0, t + 1);
    const AttentionResult one = attention(p.query.narrow(2, t, 1), p.key.narrow(2, 0, t + 1),
                                          p.value.narrow(2, 0, t + 1), {.scope = step});
    expect_close(one, {whole.context.narrow(2, t, 1), whole.lse.narrow(2, t, 1)});
    AttentionSpec last{.scope = scope, .align = Align::last};
    expect_close(attention(p.query.narrow(2, t, 1), p.key.narrow(2, 0, t + 1),
                           p.value.narrow(2, 0, t + 1), last),
                 one);
  }
}

TEST(TopBlocks, TakeEqualBlocksInOrder) {
  const Tensor query = at::ones({1, 1, 12, 2}, at::kDouble), key = at::ones_like(query);
  const Scope scope = causal() & top_blocks(2, 3);
  const Tensor lse = attention(query, key, key, {.scope = scope}).lse;
  const Tensor row = attention_weights(query, key, lse, {.scope = scope})[0][0][11];
  const Tensor want = at::tensor({1., 1., 1., 1., 0., 0., 0., 0., 0., 0., 1., 1.}, at::kDouble) / 6;
  EXPECT_TRUE(at::allclose(row, want)) << row;
}

TEST(TopBlocks, RefuseMisuse) {
  const Problem p = problem_of(5);
  expect_errors({
      {[] { top_blocks(0, 1); }, "1 blocks of 0 keys; both must be 1 or more"},
      {[] { top_blocks(4, 0); }, "0 blocks of 4 keys"},
      {[] { parse_scope("top_blocks:4"); }, "write top_blocks:BLOCK,COUNT"},
      {[] { shifted_keys(top_blocks(4, 2), 3, 1); }, "needs all keys from the first on"},
      {[] { scope_mask(top_blocks(4, 2), 1, 1, 2, 2, at::kCPU); }, "of attend::chosen"},
  });
}

}  // namespace top_blocks_test
}  // namespace attend
