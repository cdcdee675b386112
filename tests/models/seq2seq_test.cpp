#include "attend/models/seq2seq.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/data/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

Seq2SeqConfig small(const std::string& score, const std::string& cell) {
  Seq2SeqConfig config;
  config.cell = cell;
  config.score = score;
  config.embedding = 6;
  config.hidden = 8;
  config.attention_depth = 5;
  config.encoder_layers = 2;
  config.dropout = 0.3;
  config.maximum_source_length = 20;
  return config;
}

const std::vector<EncodedPair> pairs = {
    {{4, 5, 6, 7, 8}, {4, 5}}, {{9, 4}, {6, 7, 8, 4}}, {{5}, {5}}};

using Variant = std::tuple<std::string, std::string>;

std::vector<std::string> all_scores() {
  std::vector<std::string> names = {"none"};
  for (const ScoreRow& row : score_table()) names.emplace_back(row.name);
  return names;
}

class EveryVariant : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    torch::manual_seed(11);
    const auto [score, cell] = GetParam();
    network = std::make_shared<Seq2Seq>(small(score, cell), 12, 10);
    network->to(torch::kDouble);
  }
  std::shared_ptr<Seq2Seq> network;
};

INSTANTIATE_TEST_SUITE_P(Table, EveryVariant,
                         testing::Combine(testing::ValuesIn(all_scores()),
                                          testing::Values("gru", "lstm")),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

TEST_P(EveryVariant, StepsGiveTheTeacherForcedProbabilities) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const Tensor whole = network->logits(batch, {}).log_softmax(-1);
  StepState state = network->start(batch.source, batch.source_lengths);
  Tensor before = torch::full({3}, Vocabulary::start, torch::kLong);
  for (int64_t t = 0; t < batch.target.size(1); ++t) {
    StepResult result = network->step(before, state, true);
    EXPECT_TRUE(torch::allclose(result.log_probabilities, whole.select(1, t), 1e-10, 1e-10));
    if (std::get<0>(GetParam()) == "none") {
      EXPECT_FALSE(result.weights.defined());
    } else {
      EXPECT_TRUE(torch::allclose(result.weights.sum(1), torch::ones({3}, torch::kDouble)));
      EXPECT_EQ(result.weights[2].slice(0, 1).abs().sum().item<double>(), 0);
    }
    state.carried = std::move(result.carried);
    before = batch.target.select(1, t);
  }
}

TEST_P(EveryVariant, PaddingChangesNothing) {
  const Batch together = make_batch(pairs, {0, 1, 2});
  const Tensor padded = network->logits(together, {});
  for (int64_t i = 0; i < 3; ++i) {
    const Batch alone = make_batch(pairs, {i});
    const Tensor single = network->logits(alone, {});
    EXPECT_TRUE(torch::allclose(padded[i].slice(0, 0, single.size(1)), single[0], 1e-10, 1e-10));
  }
}

TEST_P(EveryVariant, EveryParameterHasAGradient) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  sequence_loss(network->logits(batch, {}), batch.target, 0.1).backward();
  for (const auto& item : network->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
}

TEST(Seq2Seq, NoiseAloneDecidesTheMasks) {
  torch::manual_seed(12);
  Seq2Seq network(small("additive", "gru"), 12, 10);
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto run = [&](uint64_t seed) {
    return network.logits(batch, at::make_generator<at::CPUGeneratorImpl>(seed));
  };
  EXPECT_TRUE(torch::equal(run(1), run(1)));
  EXPECT_FALSE(torch::equal(run(1), run(2)));
}

TEST(Seq2Seq, LossIsTheCrossEntropyOfTheSymbolsAlone) {
  torch::manual_seed(13);
  const Tensor logits = torch::randn({2, 3, 7}, torch::kDouble);
  const Tensor target = torch::tensor({{4, 2, 0}, {5, 6, 2}});
  const Tensor log_p = logits.log_softmax(-1);
  double plain = 0, uniform = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 3; ++t) {
      const auto symbol = target[b][t].item<int64_t>();
      if (symbol == Vocabulary::padding) continue;
      plain -= log_p[b][t][symbol].item<double>();
      uniform -= log_p[b][t].mean().item<double>();
    }
  }
  EXPECT_NEAR(sequence_loss(logits, target, 0.0).item<double>(), plain, 1e-12 * plain);
  EXPECT_NEAR(sequence_loss(logits, target, 0.2).item<double>(), 0.8 * plain + 0.2 * uniform,
              1e-12 * plain);
}

TEST(Seq2Seq, RefusesAnOddDepth) {
  Seq2SeqConfig config = small("dot", "gru");
  config.hidden = 7;
  EXPECT_THROW(Seq2Seq(config, 12, 10), Error);
}

}  // namespace
}  // namespace attend
