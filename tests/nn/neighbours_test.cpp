#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "attend/nn/attention_trace.h"
#include "attend/nn/transformer_stack.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

// Multi-head attention along the edges given with a sequence.
namespace attend {
namespace neighbours_test {

using at::Tensor;

constexpr int64_t places = 5, kind_count = 4, none = -1;

// Kinds of edges between all pairs of two sequences, the second of 3 places; `none` without an
// edge. Places see themselves by kind 0. One place sees only itself.
Tensor kinds_of_pairs() {
  Tensor kinds = at::full({2, places, places}, none, at::kLong);
  const auto bind = [&](int64_t entry, int64_t one, int64_t other, int64_t kind) {
    kinds[entry][one][other] = kinds[entry][other][one] = kind;
  };
  for (int64_t place = 0; place < places; ++place) bind(0, place, place, 0);
  for (int64_t place = 0; place < 3; ++place) bind(1, place, place, 0);
  bind(0, 0, 1, 1);
  bind(0, 1, 3, 2);
  bind(0, 3, 4, 1);
  bind(0, 0, 4, 3);
  bind(1, 0, 2, 3);
  return kinds;
}

Neighbours listed(const Tensor& kinds) {
  const Tensor there = kinds != none;
  const Tensor ends = there.sum(2).flatten().cumsum(0).view({2, 1, places});
  const Tensor offsets = at::cat(
      {ends.select(2, places - 1).unsqueeze(2) - there.sum({1, 2}).view({2, 1, 1}), ends}, 2);
  return {edges(offsets, there.nonzero().select(1, 2)),
          at::pad_sequence({kinds[0].masked_select(there[0]), kinds[1].masked_select(there[1])},
                           /*batch_first=*/true)};
}

MultiHeadConfig two_groups() {
  return {.depth = 12,
          .groups = {{.heads = 2, .key_heads = 1}, {.heads = 1}},
          .head_depth = 3,
          .neighbour_kinds = kind_count};
}

std::shared_ptr<MultiHeadAttention> drawn(const MultiHeadConfig& config) {
  torch::manual_seed(1);
  auto module = std::make_shared<MultiHeadAttention>(config);
  module->to(torch::kDouble);
  const torch::NoGradGuard no_gradient;
  for (Tensor& parameter : module->parameters()) parameter.copy_(torch::randn_like(parameter));
  return module;
}

// The reference: a mask over all pairs.
Tensor dense(const torch::nn::Module& module, const Tensor& x, const Tensor& kinds) {
  const auto parameters = module.named_parameters();
  const auto linear = [&](const std::string& name, const Tensor& in) {
    return at::matmul(in, parameters[name + ".weight"].t()) + parameters[name + ".bias"];
  };
  const Tensor q = linear("query", x), k = linear("key", x), v = linear("value", x);
  const Tensor there = kinds != none;
  std::vector<Tensor> contexts;
  for (int64_t head = 0; head < 3; ++head) {
    const int64_t shared = head / 2;  // heads 0 and 1 share one key head
    const auto part = [&](const Tensor& all, int64_t which) {
      return all.slice(2, 3 * which, 3 * which + 3);
    };
    const Tensor bias =
        parameters["neighbour_bias"].select(1, head).index({kinds.clamp_min(0).flatten()});
    const Tensor scores =
        at::matmul(part(q, head), part(k, shared).transpose(1, 2)) / std::sqrt(3.0) +
        bias.view_as(kinds);
    const Tensor shares = scores.exp().masked_fill(there.logical_not(), 0);
    // Padding rows see nothing.
    const Tensor weights = shares / shares.sum(2, true).clamp_min(1e-300);
    contexts.push_back(at::matmul(weights, part(v, shared)));
  }
  return linear("output", at::cat(contexts, 2));
}

TEST(Neighbours, AreAMaskWithABias) {
  const auto module = drawn(two_groups());
  const Tensor kinds = kinds_of_pairs();
  const Tensor x = torch::randn({2, places, 12}, torch::kDouble).requires_grad_();
  const Neighbours neighbours = listed(kinds);
  std::vector<Tensor> inputs = module->parameters();
  inputs.push_back(x);
  const Tensor shares = torch::randn({2, places, 12}, torch::kDouble);
  const Tensor found = module->forward(x, x, {}, {}, &neighbours),
               wanted = dense(*module, x, kinds);
  EXPECT_TRUE(at::allclose(found, wanted, 1e-11, 1e-12));
  const auto gradients = reference::gradients((found * shares).sum(), inputs, false);
  const auto expected = reference::gradients((wanted * shares).sum(), inputs, false);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(at::allclose(gradients[i], expected[i], 1e-10, 1e-11)) << i;
  EXPECT_GT(gradients[0].abs().max().item<double>(), 0) << "gradient of the biases";
}

TEST(Neighbours, GradientsAreThoseOfDifferences) {
  const auto module = drawn(two_groups());
  const Neighbours neighbours = listed(kinds_of_pairs());
  const Tensor x = torch::randn({2, places, 12}, torch::kDouble);
  reference::expect_parameter_gradients(
      *module, [&] { return module->forward(x, x, {}, {}, &neighbours).pow(2).sum() / 50; });
}

TEST(Neighbours, WeightsAreSeenAlongEdges) {
  const auto module = drawn(two_groups());
  const Tensor kinds = kinds_of_pairs();
  const Tensor x = torch::randn({2, places, 12}, torch::kDouble);
  const Neighbours neighbours = listed(kinds);
  AttentionTrace trace;
  module->forward(x, x, {}, Pass{}.watched_by(trace), &neighbours);
  ASSERT_EQ(trace.attentions().size(), 1U);
  const Tensor weights = trace.attentions()[0].weights();
  ASSERT_EQ(weights.sizes(), (std::vector<int64_t>{2, 3, places, places}));
  const Tensor off = (kinds == none).unsqueeze(1).expand_as(weights);
  EXPECT_EQ(weights.masked_select(off).abs().max().item<double>(), 0);
  EXPECT_TRUE(at::allclose(weights[0].sum(2), at::ones({3, places}, at::kDouble)));
}

// Through two layers a place depends only on places up to two steps away.
TEST(Neighbours, SpreadByOneStepPerLayer) {
  torch::manual_seed(2);
  TransformerStack stack({.layers = 2,
                          .depth = 12,
                          .self = {{.heads = 2}},
                          .feed_forward = 5,
                          .neighbour_kinds = kind_count});
  stack.to(torch::kDouble);
  stack.eval();
  Tensor kinds = at::full({2, places, places}, none, at::kLong);
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int64_t place = 0; place < places; ++place) {
      kinds[entry][place][place] = 0;
      if (place > 0) kinds[entry][place][place - 1] = kinds[entry][place - 1][place] = 1;
    }
  const Neighbours chain = listed(kinds);
  const Tensor x = torch::randn({2, places, 12}, torch::kDouble).requires_grad_();
  const Tensor end =
      (stack.forward(x, {}, {}, {}, &chain)[0][0] * torch::randn({12}, torch::kDouble)).sum();
  const Tensor moved = reference::gradients(end, {x}, false)[0].abs().sum(2);
  for (int64_t place = 0; place < places; ++place)
    EXPECT_EQ(moved[0][place].item<double>() > 0, place <= 2) << place;
  EXPECT_EQ(moved[1].max().item<double>(), 0) << "another sequence";
}

TEST(Neighbours, HaveNoPositionsAndNoPoints) {
  const auto make = [](HeadGroup group, int64_t points) {
    return [group = std::move(group), points] {
      std::make_shared<TransformerStack>(TransformerStackConfig{.layers = 1,
                                                                .depth = 12,
                                                                .self = {group},
                                                                .inducing_points = points,
                                                                .neighbour_kinds = 2});
    };
  };
  const char* positions = "neighbours lack them; take scope all, no bias";
  expect_errors({{make({.choices = {.bias = "buckets:8"}}, 0), positions},
                 {make({.choices = {.scope = "causal"}}, 0), positions},
                 {make({.rotary = true}, 0), positions},
                 {make({}, 3), "take no points (as model.inducing_points = 0)"}});
}

}  // namespace neighbours_test
}  // namespace attend
