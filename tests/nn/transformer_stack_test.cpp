#include "attend/nn/transformer_stack.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "attend/nn/attention_trace.h"
#include "attend/nn/positions.h"

namespace attend {
namespace transformer_stack_test {

using at::Tensor;

TransformerStackConfig small() {
  TransformerStackConfig config{.layers = 2, .depth = 6, .self = {{.heads = 2}}};
  config.self[0].choices.scope = "causal";
  config.feed_forward = 5;
  config.dropout = 0;
  return config;
}

std::shared_ptr<TransformerStack> make(const TransformerStackConfig& config) {
  torch::manual_seed(4);
  auto stack = std::make_shared<TransformerStack>(config);
  stack->to(torch::kDouble);
  return stack;
}

Tensor normalised(const Tensor& x, double epsilon, const Tensor& weight, const Tensor& bias) {
  const Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + epsilon).sqrt() * weight + bias;
}

// Vaswani et al. 2017, 3.1: one layer with one head, written out.
TEST(TransformerStack, IsThePapersLayer) {
  for (const bool first : {true, false}) {
    TransformerStackConfig config = small();
    config.layers = 1;
    config.self[0].heads = 1;
    config.self[0].choices.scope = "all";
    config.activation = first ? HiddenActivation::gelu : HiddenActivation::relu;
    config.normalise_first = first;
    if (first) config.epsilon = 0.1;
    const auto stack = make(config);
    const auto p = stack->named_parameters();
    const auto linear = [&](const std::string& name, const Tensor& x) {
      return at::matmul(x, p["layer0_" + name + ".weight"].t()) + p["layer0_" + name + ".bias"];
    };
    const auto norm = [&](const std::string& name, const Tensor& x) {
      return normalised(x, config.epsilon, p[name + ".weight"], p[name + ".bias"]);
    };
    const Tensor x = torch::randn({1, 3, 6}, torch::kDouble);
    const auto attention = [&](const Tensor& in) {
      const Tensor score =
          at::matmul(linear("self.query", in), linear("self.key", in).transpose(1, 2)) /
          std::sqrt(6.0);
      return linear("self.output", at::matmul(score.softmax(-1), linear("self.value", in)));
    };
    const auto feed_forward = [&](const Tensor& in) {
      const Tensor hidden = linear("feed_forward.hidden", in);
      return linear("feed_forward.output",
                    first ? hidden * 0.5 * (1 + at::erf(hidden / std::sqrt(2.0))) : hidden.relu());
    };
    Tensor expected;
    if (first) {
      const Tensor read = x + attention(norm("layer0_self_norm", x));
      expected = norm("norm", read + feed_forward(norm("layer0_feed_forward_norm", read)));
    } else {
      const Tensor read = norm("layer0_self_norm", x + attention(x));
      expected = norm("layer0_feed_forward_norm", read + feed_forward(read));
    }
    EXPECT_TRUE(torch::allclose(stack->forward(x, {}, {}, {}), expected, 1e-10, 1e-10)) << first;
  }
}

// Two layers with one head each, written out; the second reads a window.
TEST(TransformerStack, LayersTakeTurnsAndAreGated) {
  TransformerStackConfig config{.layers = 2, .depth = 6};
  config.feed_forward = 5;
  config.activation = HiddenActivation::gelu;
  config.gated = true;
  config.first_norm = false;
  HeadGroup whole{.rotary = true, .rotation = {.base = 160000}};
  HeadGroup near{.rotary = true, .rotation = {.base = 50}};
  near.choices.scope = "window:1";
  config.self_in_turn = {{whole}, {near}};
  const auto stack = make(config);
  const auto p = stack->named_parameters();
  EXPECT_FALSE(p.contains("layer0_self_norm.weight"));
  const auto linear = [&](const std::string& name, const Tensor& x) {
    return at::matmul(x, p[name + ".weight"].t()) + p[name + ".bias"];
  };
  const auto norm = [&](const std::string& name, const Tensor& x) {
    return normalised(x, config.epsilon, p[name + ".weight"], p[name + ".bias"]);
  };
  const Tensor x = torch::randn({1, 4, 6}, torch::kDouble);
  const Tensor places = torch::arange(4, torch::kDouble);
  const Tensor distance = (places.unsqueeze(0) - places.unsqueeze(1)).abs();
  Tensor expected = x;
  for (const int layer : {0, 1}) {
    const std::string name = fmt::format("layer{}_", layer);
    const double base = layer == 0 ? 160000 : 50;
    const Tensor in = layer == 0 ? expected : norm(name + "self_norm", expected);
    const Tensor score =
        at::matmul(rotate(linear(name + "self.query", in), 0, base),
                   rotate(linear(name + "self.key", in), 0, base).transpose(1, 2)) /
        std::sqrt(6.0);
    const Tensor seen = layer == 0 ? score : score.masked_fill(distance > 1, -INFINITY);
    const Tensor read = at::matmul(seen.softmax(-1), linear(name + "self.value", in));
    expected = expected + linear(name + "self.output", read);
    const Tensor normed = norm(name + "feed_forward_norm", expected);
    const Tensor hidden = linear(name + "feed_forward.hidden", normed);
    const Tensor active = hidden * 0.5 * (1 + at::erf(hidden / std::sqrt(2.0)));
    expected = expected + linear(name + "feed_forward.output",
                                 active * linear(name + "feed_forward.gate", normed));
  }
  expected = norm("norm", expected);
  EXPECT_TRUE(torch::allclose(stack->forward(x, {}, {}, {}), expected, 1e-10, 1e-10));
}

// Fixed biases have no gradient; other parameters have the same one.
TEST(TransformerStack, MayKeepItsBiases) {
  TransformerStackConfig config = small();
  config.gated = true;
  config.cross = {{.heads = 2}};
  const Tensor x = at::linspace(-1, 2, 24, torch::kDouble).view({1, 4, 6});
  std::map<std::string, Tensor> gradients[2];
  for (const bool is_fixed : {false, true}) {
    config.fixed_biases = is_fixed;
    const auto stack = make(config);
    stack->forward(x, {}, {x.cos()}, {}).square().sum().backward();
    for (const auto& item : stack->named_parameters()) {
      const bool is_bias = item.key().ends_with(".bias");
      EXPECT_EQ(item.value().grad().defined(), !(is_fixed && is_bias)) << item.key();
      if (!is_bias) gradients[is_fixed ? 1 : 0][item.key()] = item.value().grad();
    }
  }
  for (const auto& [name, gradient] : gradients[0])
    EXPECT_TRUE(gradient.equal(gradients[1].at(name))) << name;
}

TEST(TransformerStack, ExpertsAreNotGated) {
  TransformerStackConfig config = small();
  config.experts = 3;
  config.gated = true;
  EXPECT_ANY_THROW(make(config));
}

TEST(TransformerStack, StepsAreTheWhole) {
  for (const bool first : {true, false}) {
    TransformerStackConfig config = small();
    config.normalise_first = first;
    config.gated = first;
    config.cross = {{.heads = 3}};
    config.source_depth = 4;
    const auto stack = make(config);
    torch::NoGradGuard no_gradient;
    const Tensor x = torch::randn({2, 7, 6}, torch::kDouble);
    const StackSource source{torch::randn({2, 5, 4}, torch::kDouble), torch::tensor({5, 2})};
    const Tensor whole = stack->forward(x, {}, source, {});
    StackCaches caches = stack->start(source, {});
    std::vector<Tensor> parts;
    parts.push_back(stack->step(x.narrow(1, 0, 3), caches, {}));  // a prefix at once
    for (int64_t t = 3; t < 7; ++t) parts.push_back(stack->step(x.narrow(1, t, 1), caches, {}));
    EXPECT_TRUE(torch::allclose(at::cat(parts, 1), whole, 1e-10, 1e-10));
  }
}

// Padding changes neither the sequence nor the balance.
TEST(TransformerStack, ExpertsTakeTheFeedForwardNetworksPlace) {
  TransformerStackConfig config = small();
  config.experts = 3;
  config.chosen_experts = 2;
  const auto stack = make(config);
  {
    torch::NoGradGuard no_gradient;  // gates are initialised to zero, which makes all experts tie
    for (const char* layer : {"layer0", "layer1"})
      stack->named_parameters()[fmt::format("{}_experts.gate", layer)].normal_();
  }
  const Tensor x = torch::randn({2, 7, 6}, torch::kDouble);
  const auto computed = [&](const Tensor& in) {
    std::vector<Tensor> penalties;
    Pass pass;
    pass.penalties = &penalties;
    const Tensor out = stack->forward(in, torch::tensor({7, 4}), {}, pass);
    EXPECT_EQ(penalties.size(), 2U);
    return std::vector{out[0], out[1].narrow(0, 0, 4), penalties.at(0), penalties.at(1)};
  };
  Tensor other = x.clone();
  other[1].narrow(0, 4, 3).fill_(9);
  const std::vector<Tensor> first = computed(x), second = computed(other);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i], second[i])) << i;

  StackCaches caches = stack->start({}, {});
  for (int64_t t = 0; t < 4; ++t) {
    const Tensor step = stack->step(x.narrow(1, t, 1), caches, {});
    EXPECT_TRUE(at::allclose(step[1][0], first[1][t], 1e-10, 1e-10)) << t;
  }
}

TEST(TransformerStack, ShowsTheAttentionOfEachLayer) {
  TransformerStackConfig config = small();
  config.cross = {{.heads = 3}};
  const auto stack = make(config);
  torch::NoGradGuard no_gradient;
  const Tensor x = torch::randn({2, 4, 6}, torch::kDouble);
  const StackSource source{torch::randn({2, 5, 6}, torch::kDouble), torch::tensor({5, 2})};
  AttentionTrace trace;
  stack->forward(x, {}, source, Pass{}.watched_by(trace));
  const std::vector<TracedAttention>& found = trace.attentions();
  ASSERT_EQ(found.size(), 4);
  for (size_t i = 0; i < found.size(); i += 2) {
    const auto layer = static_cast<int64_t>(i / 2 + 1);
    EXPECT_EQ(found[i].site, (Site{NetworkPart::none, layer, false}));
    EXPECT_EQ(found[i + 1].site, (Site{NetworkPart::none, layer, true}));
    const Tensor own = found[i].weights(), read = found[i + 1].weights();
    EXPECT_EQ(own.sizes(), (std::vector<int64_t>{2, 2, 4, 4}));
    EXPECT_EQ(own.triu(1).abs().sum().item<double>(), 0);
    EXPECT_EQ(read.sizes(), (std::vector<int64_t>{2, 3, 4, 5}));
    EXPECT_EQ(read[1].slice(2, 2).abs().sum().item<double>(), 0);
    EXPECT_TRUE(torch::allclose(read.sum(-1), torch::ones({2, 3, 4}, torch::kDouble)));
  }
}

TEST(TransformerStack, NoiseDropsAndItsAbsenceDoesNot) {
  TransformerStackConfig config = small();
  config.dropout = 0.5;
  const auto stack = make(config);
  const Tensor x = torch::randn({2, 4, 6}, torch::kDouble);
  const auto run = [&](uint64_t seed) {
    return stack->forward(x, {}, {}, {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)});
  };
  EXPECT_TRUE(torch::equal(run(1), run(1)));
  EXPECT_FALSE(torch::equal(run(1), run(2)));
  EXPECT_TRUE(torch::equal(stack->forward(x, {}, {}, {}), stack->forward(x, {}, {}, {})));
}

}  // namespace transformer_stack_test
}  // namespace attend
