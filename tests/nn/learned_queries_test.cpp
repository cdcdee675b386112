#include "attend/nn/learned_queries.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/nn/transformer_stack.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace learned_queries_test {

using at::Tensor;

constexpr int64_t depth = 6, queries = 3;

using Named = torch::OrderedDict<std::string, Tensor>;

std::shared_ptr<LearnedQueries> make(int64_t heads) {
  torch::manual_seed(5);
  auto module = std::make_shared<LearnedQueries>(LearnedQueriesConfig{
      .queries = queries, .depth = depth, .heads = {.heads = heads}, .feed_forward = 5});
  module->to(torch::kDouble);
  const torch::NoGradGuard not_recorded;
  for (Tensor& parameter : module->parameters()) parameter.add_(torch::randn_like(parameter) / 2);
  return module;
}

Tensor linear(const Named& p, const std::string& name, const Tensor& x) {
  return at::matmul(x, p[name + ".weight"].t()) + p[name + ".bias"];
}

Tensor normalised(const Named& p, const std::string& name, const Tensor& x) {
  const Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * p[name + ".weight"] +
         p[name + ".bias"];
}

// Lee et al. 2019, eq. 6 and 7, for one set [S, depth], head by head.
Tensor written_out(const Named& p, const std::string& prefix, const Tensor& set, int64_t heads) {
  const auto name = [&](const char* part) { return prefix + part; };
  const Tensor seeds = p[name("query")];
  const Tensor query = linear(p, name("attention.query"), seeds),
               key = linear(p, name("attention.key"), set),
               value = linear(p, name("attention.value"), set);
  const int64_t head = set.size(1) / heads;
  std::vector<Tensor> contexts;
  for (int64_t h = 0; h < heads; ++h) {
    const auto part = [&](const Tensor& all) { return all.slice(1, h * head, (h + 1) * head); };
    const Tensor scores = at::mm(part(query), part(key).t()) / std::sqrt(static_cast<double>(head));
    contexts.push_back(at::mm(scores.softmax(1), part(value)));
  }
  const Tensor read = normalised(p, name("attention_norm"),
                                 seeds + linear(p, name("attention.output"), at::cat(contexts, 1)));
  const Tensor hidden = linear(p, name("feed_forward.hidden"), read).relu();
  return normalised(p, name("feed_forward_norm"),
                    read + linear(p, name("feed_forward.output"), hidden));
}

TEST(LearnedQueries, AreThePapersBlock) {
  for (const int64_t heads : {1, 3}) {
    const auto module = make(heads);
    const Tensor sets = torch::randn({2, 5, depth}, torch::kDouble);
    const Tensor result = module->forward(sets, torch::tensor({5, 2}), {});
    const Named p = module->named_parameters();
    EXPECT_TRUE(torch::allclose(result[0], written_out(p, "", sets[0], heads), 1e-10, 1e-10));
    EXPECT_TRUE(
        torch::allclose(result[1], written_out(p, "", sets[1].slice(0, 0, 2), heads), 1e-10, 1e-10))
        << "padding is not an element";
  }
}

TEST(LearnedQueries, DoNotMindTheOrder) {
  const auto module = make(2);
  const Tensor set = torch::randn({1, 4, depth}, torch::kDouble);
  const Tensor other = set.index_select(1, torch::tensor({2, 0, 3, 1}));
  EXPECT_TRUE(
      torch::allclose(module->forward(set, {}, {}), module->forward(other, {}, {}), 1e-12, 1e-12));
}

TEST(LearnedQueries, GradientsAreDifferences) {
  const auto module = make(2);
  const Tensor set = torch::randn({2, 4, depth}, torch::kDouble);
  const Tensor shares = torch::randn({2, queries, depth}, torch::kDouble);
  reference::expect_parameter_slopes(*module,
                                     [&] { return (module->forward(set, {}, {}) * shares).sum(); });
}

TEST(LearnedQueries, TellWhatDoesNotFit) {
  const auto refusal = [](const LearnedQueriesConfig& config) {
    return test::error_of([&] { LearnedQueries{config}; });
  };
  EXPECT_THAT(refusal({.queries = 0, .depth = 4}), testing::HasSubstr("take 1 or more"));
  EXPECT_THAT(refusal({.depth = 4, .heads = {.rotary = true}}), testing::HasSubstr("positions"));
  EXPECT_THAT(refusal({.depth = 4, .heads = {.choices = {.bias = "buckets:4"}}}),
              testing::HasSubstr("positions"));
}

TransformerStackConfig induced() {
  TransformerStackConfig config{.layers = 1, .depth = depth, .self = {{.heads = 2}}};
  config.feed_forward = 5;
  config.dropout = 0;
  config.inducing_points = queries;
  return config;
}

// Lee et al. 2019, eq. 9 and 10, in a layer of a stack, which normalises its input.
TEST(InducingPoints, AreReadInPlaceOfTheSet) {
  torch::manual_seed(6);
  TransformerStack stack(induced());
  stack.to(torch::kDouble);
  const Named p = stack.named_parameters();
  const Tensor set = torch::randn({1, 4, depth}, torch::kDouble);
  const Tensor in = normalised(p, "layer0_self_norm", set[0]);
  const Tensor points = written_out(p, "layer0_points.", in, 2);
  const Tensor query = linear(p, "layer0_self.query", in),
               key = linear(p, "layer0_self.key", points),
               value = linear(p, "layer0_self.value", points);
  std::vector<Tensor> contexts;
  for (int64_t h = 0; h < 2; ++h) {
    const auto part = [&](const Tensor& all) { return all.slice(1, 3 * h, 3 * h + 3); };
    contexts.push_back(
        at::mm((at::mm(part(query), part(key).t()) / std::sqrt(3.0)).softmax(1), part(value)));
  }
  const Tensor read = set[0] + linear(p, "layer0_self.output", at::cat(contexts, 1));
  const Tensor inner = normalised(p, "layer0_feed_forward_norm", read);
  const Tensor made = read + linear(p, "layer0_feed_forward.output",
                                    linear(p, "layer0_feed_forward.hidden", inner).relu());
  const Tensor whole = stack.forward(set, {}, {}, {});
  EXPECT_TRUE(torch::allclose(whole[0], normalised(p, "norm", made), 1e-10, 1e-10));
  const Tensor padded = at::cat({set, torch::randn({1, 2, depth}, torch::kDouble)}, 1);
  EXPECT_TRUE(torch::allclose(stack.forward(padded, torch::tensor({4}), {}, {}).slice(1, 0, 4),
                              whole, 1e-10, 1e-10));
}

TEST(InducingPoints, TellWhatDoesNotFit) {
  TransformerStackConfig config = induced();
  config.self[0].choices.scope = "causal";
  EXPECT_THAT(test::error_of([&] { TransformerStack{config}; }),
              testing::HasSubstr("inducing points lack positions"));
  TransformerStack stack(induced());
  EXPECT_THAT(test::error_of([&] { stack.start({}, {}); }), testing::HasSubstr("not steps"));
}

}  // namespace learned_queries_test
}  // namespace attend
