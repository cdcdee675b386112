#include "attend/nn/selective_bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attend/nn/attention_trace.h"
#include "attend/nn/multi_head_attention.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace selective_bias_test {

using at::Tensor;

// For equal sums in another order: some units in the last place of numbers from 1 to 100.
bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

// Leviathan et al. 2024, 3, by loops: F of query i and key j.
double faded(const Tensor& scores, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t t = j + 1; t < i && j > 0; ++t) sum += std::max(0.0, scores[t][j].item<double>());
  return sum;
}

TEST(SelectiveBias, IsTheFormula) {
  for (const int64_t length : {1, 2, 3, 33}) {
    torch::manual_seed(length);
    const Tensor query = random({2, 1, length, 4}), key = random({2, 1, length, 4});
    const Tensor scores = at::matmul(query, key.transpose(2, 3)) / 2;
    const SelectiveBias made = selective_bias(query, key, {}, causal(), 0, {});
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < length; ++i)
        for (int64_t j = 0; j <= i; ++j)
          EXPECT_NEAR(made.bias[b][0][i][j].item<double>(), -faded(scores[b][0], i, j), 1e-12);
    for (int64_t j = 0; j < length; ++j)  // the next query's row
      EXPECT_NEAR(made.total[1][0][0][j].item<double>(), faded(scores[1][0], length, j), 1e-12);
  }
}

MultiHeadConfig small() {
  MultiHeadConfig config{
      .depth = 8,
      .groups = {{.choices = {.scope = "causal"}, .heads = 4, .key_heads = 2, .selective = true}}};
  return config;
}

std::shared_ptr<MultiHeadAttention> made() {
  torch::manual_seed(3);
  auto module = std::make_shared<MultiHeadAttention>(small());
  module->to(torch::kDouble);
  return module;
}

// The heads on projected vectors: queries and keys of 2 numbers per head.
TEST(SelectiveHeads, ShareTheBiasOfTheFirst) {
  const auto module = made();
  const auto parameters = module->named_parameters();
  const Tensor x = random({1, 9, 8});
  const auto heads = [&](const char* name) {
    return (at::matmul(x, parameters[fmt::format("{}.weight", name)].t()) +
            parameters[fmt::format("{}.bias", name)])
        .unflatten(2, {-1, 2})
        .transpose(1, 2);
  };
  const Tensor key = heads("key").repeat_interleave(2, 1);
  const Tensor scores = at::matmul(heads("query"), key.transpose(2, 3)) / std::sqrt(2.0);
  Tensor lowered = scores.detach().clone();
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t i = 0; i < 9; ++i)
      for (int64_t j = 0; j < 9; ++j)
        lowered[0][h][i][j] =
            j > i ? -INFINITY : scores[0][h][i][j].item<double>() - faded(scores[0][0], i, j);
  const Tensor context = at::matmul(lowered.softmax(-1), heads("value").repeat_interleave(2, 1));
  const Tensor expected =
      at::matmul(context.transpose(1, 2).flatten(2), parameters["output.weight"].t()) +
      parameters["output.bias"];
  EXPECT_TRUE(close(module->forward(x, x), expected));
}

TEST(SelectiveHeads, HaveGradientsAndWeights) {
  const auto module = made();
  const Tensor x = random({2, 9, 8}), direction = random({2, 9, 8});
  const auto loss = [&](const Tensor& input) {
    return (module->forward(input, input) * direction).sum();
  };
  reference::expect_gradients([&](const reference::Tensors& inputs) { return loss(inputs[0]); },
                              {x}, {"x"});
  reference::expect_parameter_gradients(*module, [&] { return loss(x); });
  const at::NoGradGuard no_gradient;
  AttentionTrace trace;
  const Tensor watched = module->forward(x, x, {}, Pass{}.watched_by(trace));
  EXPECT_TRUE(close(watched, module->forward(x, x)));
  const TracedAttention& one = trace.attentions().at(0);
  EXPECT_TRUE(close(one.weights().sum(-1), at::ones({2, 4, 9}, at::kDouble)));
  EXPECT_TRUE(close(at::matmul(one.weights(), one.calls[0].value.repeat_interleave(2, 1)),
                    one.calls[0].result.context));
}

TEST(SelectiveHeads, RefuseMisuse) {
  const auto making = [](const std::function<void(HeadGroup&)>& change) {
    MultiHeadConfig config = small();
    change(config.groups[0]);
    return [config] { MultiHeadAttention module(config); };
  };
  expect_errors({
      {making([](HeadGroup& group) { group.choices.scope = "all"; }), "scope all"},
      {making([](HeadGroup& group) { group.choices.score = "additive"; }), "score additive"},
      {making([](HeadGroup& group) { group.choices.normaliser = "monotonic"; }),
       "normaliser monotonic"},
      {making([](HeadGroup& group) { group.indexer.keys = 2; }), "a second form of heads"},
  });
}

}  // namespace selective_bias_test
}  // namespace attend
