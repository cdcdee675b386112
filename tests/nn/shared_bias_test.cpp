#include <gtest/gtest.h>

#include <cmath>

#include "attend/nn/transformer_stack.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace shared_bias_test {

using at::Tensor;

constexpr int64_t depth = 6, heads = 2, head_depth = 5, buckets = 8, farthest = 12;

TransformerStackConfig settings(bool causal) {
  HeadGroup group{.heads = heads};
  group.choices = {"dot", causal ? "causal" : "all", "buckets:8,12", "softmax"};
  TransformerStackConfig config{.layers = 2, .depth = depth, .head_depth = head_depth};
  config.self = {group};
  config.shared_bias = true;
  config.feed_forward = 7;
  config.activation = HiddenActivation::gelu_tanh;
  config.gated = true;
  config.norm = NormKind::rms;
  config.epsilon = 1e-6;
  config.output_scale = 0.25;
  config.dropout = 0;
  return config;
}

std::shared_ptr<TransformerStack> make(const TransformerStackConfig& config) {
  torch::manual_seed(5);
  auto stack = std::make_shared<TransformerStack>(config);
  stack->to(torch::kDouble);
  const at::NoGradGuard no_gradient;
  for (const auto& item : stack->named_parameters()) item.value().uniform_(-1, 1);
  return stack;
}

// Raffel et al. 2020, 2.1: half of the buckets are single distances, the others grow.
int64_t bucket(int64_t distance, bool causal) {
  const int64_t own = causal ? buckets : buckets / 2, exact = own / 2;
  const int64_t far = causal ? std::max<int64_t>(-distance, 0) : std::abs(distance);
  int64_t found = far;
  if (far >= exact)
    found =
        std::min(own - 1, exact + static_cast<int64_t>(std::log(float(far) / float(exact)) /
                                                       std::log(double(farthest) / double(exact)) *
                                                       double(own - exact)));
  return found + (!causal && distance > 0 ? own : 0);
}

// Two layers of T5 (Raffel et al. 2020; Shazeer 2020), written out.
TEST(SharedBias, LayersAreT5s) {
  for (const bool causal : {false, true}) {
    const auto stack = make(settings(causal));
    const auto p = stack->named_parameters();
    const at::NoGradGuard no_gradient;
    const Tensor x = torch::randn({1, 30, depth}, torch::kDouble);
    const auto linear = [&](const std::string& name, const Tensor& in) {
      return at::matmul(in, p[name + ".weight"].t()) + p[name + ".bias"];
    };
    const auto norm = [&](const std::string& name, const Tensor& in) {
      return in / (in.square().mean(-1, true) + 1e-6).sqrt() * p[name + ".weight"];
    };
    const Tensor table = p["layer0_self.group0.buckets_table"];
    Tensor bias = at::empty({heads, 30, 30}, torch::kDouble);
    for (int64_t i = 0; i < 30; ++i)
      for (int64_t j = 0; j < 30; ++j)
        bias.select(1, i).select(1, j).copy_(table.select(1, bucket(j - i, causal)));
    if (causal) bias = bias.masked_fill(at::ones({30, 30}, torch::kBool).triu(1), -INFINITY);
    const auto by_head = [](const Tensor& in) {
      return in.unflatten(2, {heads, head_depth}).transpose(1, 2);
    };
    Tensor want = x;
    for (const std::string name : {"layer0_", "layer1_"}) {
      const Tensor in = norm(name + "self_norm", want);
      const Tensor scores = at::matmul(by_head(linear(name + "self.query", in)),
                                       by_head(linear(name + "self.key", in)).transpose(2, 3)) +
                            bias;
      const Tensor read = at::matmul(scores.softmax(-1), by_head(linear(name + "self.value", in)));
      want = want + linear(name + "self.output", read.transpose(1, 2).flatten(2));
      const Tensor normed = norm(name + "feed_forward_norm", want);
      const Tensor hidden = linear(name + "feed_forward.hidden", normed);
      const Tensor active =
          0.5 * hidden * (1 + (std::sqrt(2 / M_PI) * (hidden + 0.044715 * hidden.pow(3))).tanh());
      want = want + linear(name + "feed_forward.output",
                           active * linear(name + "feed_forward.gate", normed));
    }
    want = 0.25 * norm("norm", want);
    EXPECT_TRUE(at::allclose(stack->forward(x, {}, {}, {}), want, 1e-10, 1e-12)) << causal;
  }
}

TEST(SharedBias, OnlyTheFirstLayerHasTheTable) {
  const auto shared = make(settings(true));
  TransformerStackConfig config = settings(true);
  config.shared_bias = false;
  const auto own = make(config);
  EXPECT_TRUE(shared->named_parameters().contains("layer0_self.group0.buckets_table"));
  EXPECT_FALSE(shared->named_parameters().contains("layer1_self.group0.buckets_table"));
  EXPECT_TRUE(own->named_parameters().contains("layer1_self.group0.buckets_table"));
}

// The gradient of the table is the sum over the layers.
TEST(SharedBias, HasTheGradientsOfDifferences) {
  for (const bool causal : {false, true}) {
    const auto stack = make(settings(causal));
    const Tensor x = torch::randn({2, 9, depth}, torch::kDouble);
    const Tensor seen = torch::randn({2, 9, depth}, torch::kDouble);
    const Tensor lengths = torch::tensor({9, 4});
    reference::expect_parameter_slopes(
        *stack, [&] { return (stack->forward(x, lengths, {}, {}) * seen)[0].sum(); });
  }
}

TEST(SharedBias, StepsAreTheWhole) {
  const auto stack = make(settings(true));
  const at::NoGradGuard no_gradient;
  const Tensor x = torch::randn({2, 20, depth}, torch::kDouble);
  const Tensor whole = stack->forward(x, {}, {}, {});
  StackCaches caches = stack->start({}, {});
  for (int64_t t = 0; t < 20; ++t)
    EXPECT_TRUE(at::allclose(stack->step(x.narrow(1, t, 1), caches, {}), whole.narrow(1, t, 1),
                             1e-10, 1e-12));
}

TEST(SharedBias, IsTheSameInAllLayers) {
  EXPECT_EQ(
      test::error_of([] {
        const AttentionSizes sizes{.query_depth = 2, .key_depth = 2, .attention_depth = 2};
        const auto owner =
            std::make_shared<LearnedAttention>(AttentionChoices{.bias = "alibi"}, sizes, 2);
        LearnedAttention(AttentionChoices{}, sizes, 2, owner);
      }),
      "[learned attention] 2 heads with bias '' share the bias 'alibi' of 2 heads; take equal "
      "heads and bias");
}

}  // namespace shared_bias_test
}  // namespace attend
