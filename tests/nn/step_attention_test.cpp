#include "attend/nn/step_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attend/base/error.h"
#include "tests/nn/mechanism_rows.h"

namespace attend {
namespace step_attention_test {

using at::Tensor;

constexpr AttentionSizes sizes{.query_depth = 6, .key_depth = 6, .attention_depth = 5, .keys = 9};

class EveryNetwork : public testing::TestWithParam<MechanismRow> {};

std::vector<MechanismRow> rows_with_keys() {
  std::vector<MechanismRow> rows = mechanism_rows();
  std::erase_if(rows, [](const MechanismRow& row) { return row.choices.normaliser == "linear"; });
  // A single query has no sequence of its own.
  std::erase_if(rows, [](const MechanismRow& row) {
    const std::vector<BiasChoice> biases = parse_biases(row.choices.bias);
    return std::any_of(biases.begin(), biases.end(),
                       [](const BiasChoice& bias) { return bias.row->is_of_source; });
  });
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Network, EveryNetwork, testing::ValuesIn(rows_with_keys()), row_name);

// Mapping keys once and querying one by one equals the operator with all queries at once.
TEST_P(EveryNetwork, IsTheOperatorStepByStep) {
  torch::manual_seed(1);
  StepAttention network(GetParam().choices, sizes);
  network.to(torch::kDouble);
  const Tensor queries = torch::randn({3, 4, 6}, torch::kDouble);
  const Tensor keys = torch::randn({3, 7, 6}, torch::kDouble);
  const Tensor values = torch::randn({3, 7, 4}, torch::kDouble);
  const Tensor lengths = torch::tensor({7, 2, 5});
  const AttentionSpec spec = network.spec(queries, {.keys = 7, .key_lengths = lengths});
  const auto expected = attention(queries, keys, values, spec);
  const Tensor all_weights = attention_weights(queries, keys, expected.lse, spec);
  const Tensor all_scores = attention_scores(queries, keys, spec);

  const AttentionMemory memory = network.prepare(keys, values, lengths);
  std::vector<Tensor> carried;
  for (int64_t i = 0; i < 4; ++i) {
    const AttentionStep step = network.forward(queries.select(1, i), memory, carried);
    EXPECT_TRUE(torch::allclose(step.context, expected.context.select(1, i), 1e-10, 1e-10));
    EXPECT_TRUE(torch::allclose(step.lse, expected.lse.select(1, i), 1e-10, 1e-10));
    const Tensor weights = network.weights(step, memory);
    EXPECT_TRUE(torch::allclose(weights, all_weights.select(1, i), 1e-10, 1e-10));
    EXPECT_TRUE(
        torch::allclose(network.scores(step, memory), all_scores.select(1, i), 1e-10, 1e-10));
    EXPECT_EQ(weights[1].slice(0, 2).abs().sum().item<double>(), 0);
    for (const Tensor& tensor : step.carried) EXPECT_EQ(tensor.size(0), 3);
    carried = step.carried;
  }
}

// Beams reorder and drop rows between steps.
TEST_P(EveryNetwork, RowsOfWhatIsCarriedMoveFreely) {
  torch::manual_seed(2);
  StepAttention network(GetParam().choices, sizes);
  network.to(torch::kDouble);
  const Tensor keys = torch::randn({3, 5, 6}, torch::kDouble),
               query = torch::randn({3, 6}, torch::kDouble);
  const AttentionMemory memory = network.prepare(keys, keys, torch::tensor({5, 2, 4}));
  const AttentionStep first = network.forward(query, memory);
  const Tensor whole = network.forward(query, memory, first.carried).context;
  const Tensor rows = torch::tensor({2, 0});
  std::vector<Tensor> carried;
  for (const Tensor& tensor : first.carried) carried.push_back(tensor.index_select(0, rows));
  const AttentionMemory part{memory.keys.index_select(0, rows), memory.values.index_select(0, rows),
                             memory.lengths.index_select(0, rows)};
  const Tensor moved = network.forward(query.index_select(0, rows), part, carried).context;
  EXPECT_TRUE(torch::allclose(moved, whole.index_select(0, rows), 1e-12, 1e-12));
}

// A source may be shorter than the prefix that every query sees.
TEST(StepAttention, SeesWhatThereIsOfAPrefix) {
  const Tensor keys = torch::randn({2, 3, 6}), query = torch::randn({2, 6});
  for (const auto& [longer, whole] : {std::pair{"prefix:9", "prefix:3"},
                                      {"window:1 | global:4", "window:1 | global:3"},
                                      {"prefix:1 | prefix:7", "all"}}) {
    SCOPED_TRACE(longer);
    Tensor contexts[2];
    for (const bool beyond : {false, true}) {
      torch::manual_seed(3);
      const StepAttention network({.score = "additive", .scope = beyond ? longer : whole}, sizes);
      const AttentionMemory memory = network.prepare(keys, keys, torch::tensor({3, 2}));
      const AttentionStep first = network.forward(query, memory);
      contexts[beyond] = network.forward(query, memory, first.carried).context;
    }
    EXPECT_TRUE(at::equal(contexts[0], contexts[1]));
  }
}

TEST(StepAttention, KeepsTheNamesOfItsWeights) {
  const StepAttention network({.score = "additive"}, sizes);
  std::vector<std::string> names;
  for (const auto& item : network.named_parameters()) names.push_back(item.key());
  EXPECT_THAT(names, testing::ElementsAre("v", "W_q", "W_k", "b"));
}

TEST(StepAttention, RefusesScoresOfFeatures) {
  EXPECT_THROW(StepAttention(mechanism("performer").choices, sizes), Error);
  EXPECT_THROW(StepAttention(mechanism("forget").choices, sizes), Error);
}

TEST(StepAttention, RefusesAnUnknownScore) {
  EXPECT_THROW(StepAttention({.score = "additve"}, sizes), Error);
}

}  // namespace step_attention_test
}  // namespace attend
