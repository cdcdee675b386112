#include "attend/nn/score_mixer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attend/nn/attention_trace.h"
#include "attend/nn/multi_head_attention.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace score_mixer_test {

using at::Tensor;

// For equal sums in another order: some units in the last place of numbers from 1 to 100.
bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

// Golovneva et al. 2025, 3.1, by loops: the weights of query i of a head before heads are mixed.
Tensor row_by_loops(const Tensor& scores, const Tensor& kernel, int64_t i) {
  const int64_t rows = kernel.size(0), columns = kernel.size(1), keys = scores.size(1);
  const auto score = [&](int64_t query, int64_t j) {
    return query < 0 || j < 0 || j > query ? 0.0 : scores[query][j].item<double>();
  };
  std::vector<double> powers(static_cast<size_t>(keys), 0.0);
  double sum = 0;
  for (int64_t j = 0; j <= i; ++j) {
    double mixed = 0;
    for (int64_t a = 0; a < rows; ++a)
      for (int64_t b = 0; b < columns; ++b)
        mixed += kernel[a][b].item<double>() * score(i - rows + 1 + a, j - columns / 2 + b);
    sum += powers[static_cast<size_t>(j)] = std::exp(mixed);
  }
  return torch::tensor(powers, torch::kDouble) / sum;
}

TEST(ScoreMixer, IsTheFormula) {
  for (const int64_t length : {1, 2, 5, 17})
    for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 3}, {6, 11}}) {
      torch::manual_seed(length);
      const Tensor all = random({1, 4, length, length}), kernel = random({4, rows, columns});
      const Tensor mix = random({2, 2, 2});
      const Tensor seen = all.masked_fill(at::ones({length, length}, at::kBool).triu(1), -INFINITY);
      const Tensor weights = mixed_weights(seen, length, kernel, mix);
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < length; ++i) {
          Tensor expected = at::zeros({length}, at::kDouble);
          for (int64_t g = 0; g < 2; ++g)
            expected += mix[h / 2][g][h % 2] *
                        row_by_loops(all[0][h / 2 * 2 + g], kernel[h / 2 * 2 + g], i);
          EXPECT_TRUE(close(weights[0][h][i], expected)) << length << ' ' << rows << ' ' << i;
        }
      // The last queries, with the ones before.
      const int64_t few = (length + 1) / 2;
      EXPECT_TRUE(close(mixed_weights(seen, few, kernel, mix), weights.slice(2, length - few)));
    }
}

MultiHeadConfig small() {
  return {.depth = 8,
          .groups = {{.choices = {.scope = "causal"},
                      .heads = 4,
                      .key_heads = 2,
                      .mix = {.queries = 2, .keys = 3, .heads = 2}}}};
}

TEST(ScoreMixer, BeginsAsPlainHeads) {
  torch::manual_seed(3);
  MultiHeadAttention module(small());
  MultiHeadConfig plain = small();
  plain.groups[0].mix = {};
  MultiHeadAttention other(plain);
  const torch::NoGradGuard no_gradient;
  for (const auto& item : other.named_parameters())
    item.value().copy_(module.named_parameters()[item.key()]);
  const Tensor x = torch::randn({2, 9, 8});
  EXPECT_TRUE(at::allclose(module.forward(x, x), other.forward(x, x), 1e-4, 1e-5));
}

TEST(ScoreMixer, HasGradientsAndWeights) {
  torch::manual_seed(4);
  MultiHeadAttention module(small());
  module.to(torch::kDouble);
  {
    const torch::NoGradGuard no_gradient;
    for (Tensor& each : module.parameters()) each.add_(torch::randn_like(each) * 0.2);
  }
  const Tensor x = random({2, 7, 8}), direction = random({2, 7, 8});
  const auto loss = [&](const Tensor& input) {
    return (module.forward(input, input) * direction).sum();
  };
  reference::expect_gradients([&](const reference::Tensors& inputs) { return loss(inputs[0]); },
                              {x}, {"x"});
  reference::expect_parameter_gradients(module, [&] { return loss(x); });
  const at::NoGradGuard no_gradient;
  AttentionTrace trace;
  const Tensor watched = module.forward(x, x, {}, Pass{}.watched_by(trace));
  EXPECT_TRUE(close(watched, module.forward(x, x)));
  const TracedAttention& one = trace.attentions().at(0);
  EXPECT_EQ(one.weights().triu(1).abs().max().item<double>(), 0);
  EXPECT_TRUE(close(at::matmul(one.weights(), one.calls[0].value.repeat_interleave(2, 1)),
                    one.calls[0].result.context));
}

TEST(ScoreMixer, RefusesMisuse) {
  const auto making = [](const std::function<void(HeadGroup&)>& change) {
    MultiHeadConfig config = small();
    change(config.groups[0]);
    return [config] { MultiHeadAttention module(config); };
  };
  expect_errors({
      {making([](HeadGroup& group) { group.mix.keys = 4; }), "a kernel of 2 queries and 4 keys"},
      {making([](HeadGroup& group) { group.mix.heads = 3; }), "3 of 4 heads"},
      {making([](HeadGroup& group) { group.choices.scope = "all"; }), "scope all"},
      {making([](HeadGroup& group) { group.choices.normaliser = "sigmoid"; }),
       "normaliser sigmoid"},
      {making([](HeadGroup& group) { group.differential = true; }), "a second form of heads"},
      {[] {
         mixed_weights(at::zeros({1, 2, 3, 3}), 3, at::zeros({1, 2, 3}), {});
       },
       "kernel has shape [1, 2, 3]"},
      {[] {
         mixed_weights(at::zeros({1, 2, 3, 3}), 3, at::zeros({2, 2, 3}), at::zeros({2, 2, 2}));
       },
       "mix has shape [2, 2, 2]"},
  });
}

}  // namespace score_mixer_test
}  // namespace attend
