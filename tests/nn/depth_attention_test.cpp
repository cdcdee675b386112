#include "attend/nn/depth_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attend/nn/transformer_stack.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace depth_attention_test {

using at::Tensor;
using Row = std::vector<double>;

// For equal sums in another order: some units in the last place of numbers from 1 to 100.
bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

void randomise(torch::nn::Module& module) {
  module.to(torch::kDouble);
  const torch::NoGradGuard no_gradient;
  for (Tensor& each : module.parameters()) each.copy_(torch::randn_like(each) * 0.4);
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Row row_of(const Tensor& x) {
  const Tensor plain = x.contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

// Kimi Team 2026: reads all of `outputs`, for one position, by loops.
Row read_by_loops(const std::vector<Row>& outputs, size_t block, const Row& query) {
  std::vector<Row> sums = {outputs[0]};
  for (size_t i = 1; i < outputs.size(); ++i) {
    if ((i - 1) % block == 0) {
      sums.push_back(outputs[i]);
      continue;
    }
    for (size_t a = 0; a < query.size(); ++a) sums.back()[a] += outputs[i][a];
  }
  Row result(query.size(), 0.0);
  double whole = 0;
  for (const Row& sum : sums) {
    const double size = std::sqrt(dot(sum, sum) / static_cast<double>(sum.size()) + 1e-6);
    const double weight = std::exp(dot(sum, query) / size);
    whole += weight;
    for (size_t a = 0; a < query.size(); ++a) result[a] += weight * sum[a];
  }
  for (double& each : result) each /= whole;
  return result;
}

TEST(DepthAttention, IsTheFormula) {
  for (const int64_t block : {1, 2, 3, 9}) {
    torch::manual_seed(block);
    DepthAttention reader(5, 7, block);
    randomise(reader);
    const Tensor queries = reader.named_parameters()["queries"].detach();
    std::vector<Tensor> given = {random({2, 3, 5})};
    DepthAttention::Outputs outputs(reader, given[0]);
    EXPECT_TRUE(outputs.read({}).is_same(given[0]));
    for (int64_t l = 0; l < 7; ++l) {
      given.push_back(random({2, 3, 5}));
      outputs.add(given.back());
      const Tensor read = outputs.read({}).detach();
      std::vector<Row> rows;
      for (const Tensor& each : given) rows.push_back(row_of(each[1][2]));
      const Row expected = read_by_loops(rows, static_cast<size_t>(block), row_of(queries[l]));
      EXPECT_TRUE(close(read[1][2], torch::tensor(expected, torch::kDouble))) << block << ' ' << l;
    }
  }
}

TEST(DepthAttention, BeginsAsThePlainMean) {
  const at::NoGradGuard no_gradient;
  DepthAttention reader(4, 2, 1);
  const Tensor a = torch::randn({1, 2, 4}), b = torch::randn({1, 2, 4});
  DepthAttention::Outputs outputs(reader, a);
  outputs.add(b);
  EXPECT_TRUE(at::allclose(outputs.read({}), (a + b) / 2));
}

// The stack with the same sublayers, one after another.
TEST(DepthAttention, JoinsTheSublayersOfAStack) {
  torch::manual_seed(4);
  TransformerStack stack({.layers = 2,
                          .depth = 8,
                          .self = {{.choices = {.scope = "causal"}, .heads = 2}},
                          .feed_forward = 6,
                          .depth_block = 1,
                          .dropout = 0});
  randomise(stack);
  const auto children = stack.named_children();
  const auto child = [&](const std::string& name) { return children[name]; };
  const auto norm = [&](const std::string& name, const Tensor& x) {
    return std::dynamic_pointer_cast<Norm>(child(name))->forward(x, {});
  };
  const Tensor x = random({2, 5, 8});
  const Tensor queries = stack.named_parameters()["depth.queries"];
  std::vector<Tensor> outputs = {x};
  const auto read = [&] {
    std::vector<Tensor> scores;
    for (const Tensor& each : outputs)
      scores.push_back(at::matmul(each / (each.square().mean(-1, true) + 1e-6).sqrt(),
                                  queries[static_cast<int64_t>(outputs.size()) - 2].unsqueeze(1)));
    const Tensor weights = at::cat(scores, -1).softmax(-1);
    return at::einsum("btn,nbtd->btd", {weights, at::stack(outputs)});
  };
  for (const char* layer : {"layer0_", "layer1_"}) {
    const std::string name = layer;
    const Tensor before = norm(name + "self_norm", outputs.size() == 1 ? x : read());
    outputs.push_back(std::dynamic_pointer_cast<MultiHeadAttention>(child(name + "self"))
                          ->forward(before, before));
    outputs.push_back(std::dynamic_pointer_cast<FeedForward>(child(name + "feed_forward"))
                          ->forward(norm(name + "feed_forward_norm", read()), {}));
  }
  EXPECT_TRUE(close(stack.forward(x, {}, {}, {}), norm("norm", read())));
}

TEST(DepthAttention, HasGradients) {
  torch::manual_seed(5);
  DepthAttention reader(3, 3, 2);
  randomise(reader);
  const Tensor direction = random({2, 2, 3});
  const auto loss = [&](const reference::Tensors& inputs) {
    DepthAttention::Outputs outputs(reader, inputs[0]);
    Tensor sum = outputs.read({});
    for (size_t i = 1; i < inputs.size(); ++i) {
      outputs.add(inputs[i]);
      sum = sum * sum + outputs.read({});
    }
    return (sum * direction).sum();
  };
  const reference::Tensors inputs = {random({2, 2, 3}), random({2, 2, 3}), random({2, 2, 3}),
                                     random({2, 2, 3})};
  reference::expect_gradients(loss, inputs, {"input", "first", "second", "third"});
  reference::expect_parameter_gradients(reader, [&] { return loss(inputs); });
}

TEST(DepthAttention, RefusesMisuse) {
  expect_errors({
      {[] { DepthAttention(0, 1, 1); }, "sublayers of depth 0"},
      {[] { DepthAttention(4, 4, 0); }, "blocks of 0"},
      {[] {
         TransformerStack({.layers = 1,
                           .depth = 4,
                           .self = {HeadGroup{}},
                           .normalise_first = false,
                           .depth_block = 1});
       },
       "needs norms before the sublayers"},
  });
}

}  // namespace depth_attention_test
}  // namespace attend
