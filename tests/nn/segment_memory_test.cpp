#include "attend/nn/segment_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attend/nn/attention_trace.h"
#include "attend/nn/multi_head_attention.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace segment_memory_test {

using at::Tensor;

// For equal sums in another order: some units in the last place of numbers from 1 to 100.
bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

double feature(double x) { return x > 0 ? x + 1 : std::exp(x); }

double product(const Tensor& q, const Tensor& k, bool mapped) {
  double sum = 0;
  for (int64_t a = 0; a < q.size(0); ++a) {
    const double x = q[a].item<double>(), y = k[a].item<double>();
    sum += mapped ? feature(x) * feature(y) : x * y;
  }
  return mapped ? sum : std::exp(sum / std::sqrt(static_cast<double>(q.size(0))));
}

// Munkhdalai et al. 2024, eq. 2-7 and 10, by loops: the weights of query i of a head.
Tensor weights_by_loops(const SegmentHeads& heads, int64_t segment, int64_t h, int64_t i,
                        double gate) {
  const int64_t begin = i / segment * segment;
  std::vector<double> row(static_cast<size_t>(heads.key.size(2)), 0.0);
  double near = 0, far = 0;
  for (int64_t j = 0; j <= i; ++j) {
    const bool own = j >= begin;
    const Tensor &q = own ? heads.query : heads.plain_query, &k = own ? heads.key : heads.plain_key;
    const double made = product(q[0][h][i], k[0][h / 2][j], !own);
    row[static_cast<size_t>(j)] = made;
    (own ? near : far) += made;
  }
  for (int64_t j = 0; j <= i; ++j)
    row[static_cast<size_t>(j)] *= j >= begin ? (1 - gate) / near : gate / far;
  return torch::tensor(row, torch::kDouble);
}

SegmentHeads heads_of(int64_t length) {
  torch::manual_seed(length);
  return {random({1, 4, length, 3}), random({1, 2, length, 3}), random({1, 2, length, 2}),
          random({1, 4, length, 3}), random({1, 2, length, 3})};
}

TEST(SegmentMemory, IsTheFormula) {
  for (const int64_t length : {1, 3, 18, 41})
    for (const int64_t segment : {1, 4, 64}) {
      SCOPED_TRACE(testing::Message() << length << ' ' << segment);
      const SegmentHeads heads = heads_of(length);
      const Tensor gate = at::rand({4, 1, 1}, at::kDouble);
      const Tensor weights = memory_weights(segment, heads, {}, gate);
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < length; ++i)
          EXPECT_TRUE(close(weights[0][h][i],
                            weights_by_loops(heads, segment, h, i, gate[h].item<double>())));
      MemorySums sums;
      const Tensor contexts = memory_contexts(segment, heads, {}, gate, sums, {});
      EXPECT_TRUE(close(contexts, at::matmul(weights, heads.value.repeat_interleave(2, 1))));
      EXPECT_EQ(sums.values.defined(), (length - 1) / segment > 0);
    }
}

MultiHeadConfig small() {
  return {.depth = 8,
          .groups = {{.choices = {.scope = "causal"},
                      .heads = 4,
                      .key_heads = 2,
                      .rotary = true,
                      .memory_segment = 3}}};
}

std::shared_ptr<MultiHeadAttention> made() {
  torch::manual_seed(3);
  auto module = std::make_shared<MultiHeadAttention>(small());
  module->to(torch::kDouble);
  const torch::NoGradGuard no_gradient;
  module->named_parameters()["memory0.beta"].copy_(random({4}));
  return module;
}

TEST(SegmentMemory, HasGradientsAndWeights) {
  const auto module = made();
  const Tensor x = random({2, 8, 8}), direction = random({2, 8, 8});
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
  EXPECT_TRUE(close(one.weights().slice(2, 3).sum(-1), at::ones({2, 4, 5}, at::kDouble)));
  EXPECT_TRUE(close(at::matmul(one.weights(), one.calls[0].value.repeat_interleave(2, 1)),
                    one.calls[0].result.context));
}

// A state holds no keys of segments before the last, so that it does not grow.
TEST(SegmentMemory, StepsForgetTheKeysOfEarlierSegments) {
  const at::NoGradGuard no_gradient;
  const auto module = made();
  EXPECT_FALSE(module->keeps_keys());
  const Tensor x = random({2, 40, 8}), whole = module->forward(x, x);
  MultiHeadState state;
  for (int64_t t = 0; t < 40; ++t) {
    if (t == 20) state.reorder(torch::tensor({0, 1}));
    EXPECT_TRUE(close(module->step(x.slice(1, t, t + 1), state), whole.slice(1, t, t + 1))) << t;
    EXPECT_LE(state.held_keys(), 3);
  }
}

TEST(SegmentMemory, RefusesMisuse) {
  const auto making = [](const std::function<void(HeadGroup&)>& change) {
    MultiHeadConfig config = small();
    change(config.groups[0]);
    return [config] { MultiHeadAttention module(config); };
  };
  expect_errors({
      {making([](HeadGroup& group) { group.choices.scope = "all"; }), "scope all"},
      {making([](HeadGroup& group) { group.choices.scope = "causal & window:2"; }), "window:2"},
      {making([](HeadGroup& group) { group.choices.bias = "alibi"; }), "bias 'alibi'"},
      {making([](HeadGroup& group) { group.choices.normaliser = "temperature:2"; }),
       "normaliser temperature:2"},
      {making([](HeadGroup& group) { group.selective = true; }), "a second form of heads"},
      {[] { SegmentMemory(0, 2); }, "segments of 0 keys"},
  });
}

}  // namespace segment_memory_test
}  // namespace attend
