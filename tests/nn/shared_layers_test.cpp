#include <gtest/gtest.h>

#include "attend/nn/transformer_stack.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace shared_layers_test {

using at::Tensor;

constexpr int64_t depth = 6;

TransformerStackConfig settings(std::vector<int64_t> owners, int64_t layers = 5) {
  TransformerStackConfig config{.layers = layers, .depth = depth};
  HeadGroup group{.heads = 2};
  group.choices = {"scaled_dot", "all", "", "softmax"};
  config.self = {group};
  config.owners = std::move(owners);
  config.feed_forward = 7;
  config.activation = HiddenActivation::gelu;
  config.normalise_first = false;
  config.dropout = 0;
  return config;
}

std::shared_ptr<TransformerStack> make(const TransformerStackConfig& config) {
  torch::manual_seed(7);
  auto stack = std::make_shared<TransformerStack>(config);
  stack->to(torch::kDouble);
  const at::NoGradGuard no_gradient;
  for (const auto& item : stack->named_parameters()) item.value().uniform_(-1, 1);
  return stack;
}

const std::vector<int64_t> owners = {0, 0, 2, 0, 2};

TEST(SharedLayers, HaveTheirParametersOnce) {
  const auto stack = make(settings(owners));
  const auto parameters = stack->named_parameters();
  EXPECT_EQ(stack->layers(), 5);
  for (const int64_t layer : {0, 2})
    EXPECT_TRUE(parameters.contains(fmt::format("layer{}_self.query.weight", layer)));
  for (const int64_t layer : {1, 3, 4})
    EXPECT_FALSE(parameters.contains(fmt::format("layer{}_self.query.weight", layer)));
}

// A stack without sharing, with copies of the parameters, computes the same.
TEST(SharedLayers, ComputeAsCopies) {
  const auto shared = make(settings(owners)), plain = make(settings({}));
  const at::NoGradGuard no_gradient;
  const auto theirs = shared->named_parameters();
  for (const auto& item : plain->named_parameters()) {
    std::string name = item.key();
    const auto layer = static_cast<size_t>(name[5] - '0');
    name[5] = static_cast<char>('0' + owners[layer]);
    item.value().copy_(theirs[name]);
  }
  const Tensor x = torch::randn({2, 9, depth}, torch::kDouble), lengths = torch::tensor({9, 4});
  EXPECT_TRUE(shared->forward(x, lengths, {}, {}).equal(plain->forward(x, lengths, {}, {})));
}

// The gradient of a parameter is the sum over its layers.
TEST(SharedLayers, HaveTheGradientsOfDifferences) {
  const auto stack = make(settings(owners));
  const Tensor x = torch::randn({1, 4, depth}, torch::kDouble),
               seen = torch::randn({1, 4, depth}, torch::kDouble);
  reference::expect_parameter_slopes(*stack,
                                     [&] { return (stack->forward(x, {}, {}, {}) * seen).sum(); });
}

TEST(SharedLayers, AreEarlierOnesOfTheSameKind) {
  const auto refusal = [](const TransformerStackConfig& config) {
    return test::error_of([&] { TransformerStack stack(config); });
  };
  EXPECT_EQ(refusal(settings({0, 0})),
            "[transformer] got the owners of the parameters of 2 layers, and there are 5 (as "
            "model.shared_layers and model.layers); name one per layer");
  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{0, 2, 2, 2, 2}, {0, 0, 1, 0, 0}, {-1, 0, 0, 0, 0}})
    EXPECT_NE(refusal(settings(wrong)).find("an earlier layer with parameters of its own"),
              std::string::npos);
  TransformerStackConfig turns = settings({0, 0, 0}, 3);
  turns.self_in_turn = {turns.self, turns.self};
  EXPECT_EQ(
      refusal(turns),
      "[transformer] layers 1 and 2 share parameters, and layers differ in turn; let layers of "
      "equal kind share");
  turns.owners = {0, 1, 0};
  EXPECT_EQ(TransformerStack(turns).layers(), 3);
}

}  // namespace shared_layers_test
}  // namespace attend
