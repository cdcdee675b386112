#include "attend/nn/attention_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

constexpr AttentionSizes sizes{6, 6, 5, 9};

std::vector<std::string> score_names() {
  std::vector<std::string> names;
  for (const ScoreRow& row : score_table()) names.emplace_back(row.name);
  return names;
}

class EveryScore : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Table, EveryScore, testing::ValuesIn(score_names()),
                         [](const auto& info) { return info.param; });

// Mapping keys once and querying them many times is the operator itself.
TEST_P(EveryScore, IsTheOperatorWithItsParameters) {
  torch::manual_seed(1);
  AttentionNetwork network(GetParam(), sizes);
  network.to(torch::kDouble);
  const Tensor query = torch::randn({3, 6}, torch::kDouble);
  const Tensor keys = torch::randn({3, 7, 6}, torch::kDouble);
  const Tensor values = torch::randn({3, 7, 4}, torch::kDouble);
  const Tensor lengths = torch::tensor({7, 2, 5});
  Parameters parameters;
  for (const auto& item : network.named_parameters()) parameters.emplace(item.key(), item.value());
  const AttentionSpec spec{.score = Score(GetParam(), parameters), .scope = key_lengths(lengths)};
  const auto expected = attention(query.unsqueeze(1), keys, values, spec);

  const AttentionMemory memory = network.prepare(keys, values, lengths);
  const auto [context, lse] = network.forward(query, memory);
  EXPECT_TRUE(torch::allclose(context, expected.context.squeeze(1), 1e-12, 1e-12));
  EXPECT_TRUE(torch::allclose(lse, expected.lse.squeeze(1), 1e-12, 1e-12));
  const Tensor weights = network.weights(query, lse, memory);
  EXPECT_TRUE(torch::allclose(weights.sum(1), torch::ones({3}, torch::kDouble), 0, 1e-12));
  EXPECT_EQ(weights[1].slice(0, 2).abs().sum().item<double>(), 0);
  EXPECT_TRUE(
      torch::allclose(torch::bmm(weights.unsqueeze(1), values).squeeze(1), context, 1e-12, 1e-12));
}

TEST_P(EveryScore, TrainsEveryParameter) {
  torch::manual_seed(2);
  AttentionNetwork network(GetParam(), sizes);
  const Tensor keys = torch::randn({2, 5, 6}).requires_grad_();
  const auto memory = network.prepare(keys, keys, torch::tensor({5, 4}));
  network.forward(torch::randn({2, 6}), memory).context.square().sum().backward();
  for (const auto& item : network.named_parameters()) {
    if (!item.value().requires_grad()) continue;  // drawn, not trained
    // Softmax cancels what is the same for all keys; a first query has no past.
    if (item.key() == "w_q" || (GetParam() == "linear" && item.key() == "b")) continue;
    if (item.key() == "U" || item.key() == "F" || item.key() == "w_c") continue;
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
  EXPECT_GT(keys.grad().abs().sum().item<double>(), 0);
}

TEST(AttentionNetwork, RefusesAnUnknownScore) {
  EXPECT_THROW(AttentionNetwork("additve", sizes), Error);
}

TEST(AttentionNetwork, RefusesDepthsThatCannotBeCompared) {
  EXPECT_THROW(AttentionNetwork("dot", AttentionSizes{6, 4, 5, 9}), Error);
  EXPECT_NO_THROW(AttentionNetwork("general", AttentionSizes{6, 4, 5, 9}));
  EXPECT_NO_THROW(AttentionNetwork("additive", AttentionSizes{6, 4, 5, 9}));
}

}  // namespace
}  // namespace attend
