#include "attend/decode/beam_search.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t symbols = 4;  // of which 0 starts and 1 ends
constexpr SequenceEnds ends{0, 1};

// A table of probabilities that depend on the symbol before, the step and the sentence.
class TableModel : public StepModel {
 public:
  explicit TableModel(int64_t steps, int64_t sentences) {
    table =
        torch::randn({sentences, steps, symbols, symbols}, torch::kDouble).mul(2).log_softmax(-1);
  }

  StepState start() const {
    const int64_t sentences = table.size(0);
    StepState state;
    state.carried = {torch::zeros({sentences}, torch::kLong)};
    state.memory = {torch::arange(sentences)};
    return state;
  }

  StepResult step(const Tensor& tokens, StepState& state, bool with_weights) override {
    const Tensor position = state.carried[0];
    StepResult result;
    result.log_probabilities = table.index({state.memory[0], position, tokens});
    state.carried = {position + 1};
    // Says which sentence, step and symbol before the row was made for.
    if (with_weights)
      result.weights = torch::stack({state.memory[0], position, tokens}, 1).to(torch::kFloat);
    ++calls;
    return result;
  }

  Tensor table;
  int64_t calls = 0;
};

struct Scored {
  std::vector<int64_t> sequence;
  double score;
};

// Every complete sequence of up to `longest` symbols, best first.
std::vector<Scored> exhaustive(const Tensor& table, int64_t longest, double length_penalty) {
  std::vector<Scored> all;
  const auto visit = [&](auto&& self, std::vector<int64_t>& prefix, double log_p) -> void {
    const auto step = static_cast<int64_t>(prefix.size());
    if (step >= longest) return;
    const int64_t before = prefix.empty() ? ends.start : prefix.back();
    for (int64_t next = 0; next < symbols; ++next) {
      const double total = log_p + table[step][before][next].item<double>();
      if (next == ends.end) {
        all.push_back({prefix, total / std::pow(static_cast<double>(step + 1), length_penalty)});
        continue;
      }
      prefix.push_back(next);
      self(self, prefix, total);
      prefix.pop_back();
    }
  };
  std::vector<int64_t> prefix;
  visit(visit, prefix, 0.0);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

// What cannot be is no answer, however wide the beam.
TEST(BeamSearch, LeavesOutWhatHasNoProbability) {
  TableModel model(2, 1);
  const double no = -std::numeric_limits<double>::infinity();
  const double half = std::log(0.5);
  const Tensor first = torch::tensor({no, no, half, half}, torch::kDouble);
  const Tensor then = torch::tensor({no, 0.0, no, no}, torch::kDouble);
  model.table = torch::stack({first.expand({4, 4}), then.expand({4, 4})}).unsqueeze(0);
  const auto found = beam_search(model, model.start(), {2}, ends, {.beam = 4, .nbest = 4})[0];
  ASSERT_EQ(found.size(), 2U);
  for (const Hypothesis& hypothesis : found) {
    EXPECT_EQ(hypothesis.symbols.size(), 1U);
    EXPECT_EQ(hypothesis.log_probability, half);
    EXPECT_TRUE(hypothesis.complete);
  }
}

class LengthPenalty : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Values, LengthPenalty, testing::Values(0.0, 0.6, 1.0));

// A beam as wide as the tree is exhaustive search.
TEST_P(LengthPenalty, WideBeamFindsWhatExhaustiveSearchFinds) {
  torch::manual_seed(31);
  constexpr int64_t longest = 4;
  TableModel model(longest, 3);
  const BeamOptions options{.beam = 400, .nbest = 10, .length_penalty = GetParam()};
  const auto found = beam_search(model, model.start(), {longest, longest, longest}, ends, options);
  for (int64_t b = 0; b < 3; ++b) {
    const auto expected = exhaustive(model.table[b], longest, GetParam());
    const auto& hypotheses = found[static_cast<size_t>(b)];
    ASSERT_EQ(hypotheses.size(), 10U);
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(hypotheses[i].symbols, expected[i].sequence);
      EXPECT_NEAR(hypotheses[i].score, expected[i].score, 1e-12);
      EXPECT_TRUE(hypotheses[i].complete);
    }
  }
}

TEST(BeamSearch, WidthOneIsGreedy) {
  torch::manual_seed(32);
  TableModel model(12, 5);
  const auto found = beam_search(model, model.start(), std::vector<int64_t>(5, 12), ends, {});
  for (int64_t b = 0; b < 5; ++b) {
    std::vector<int64_t> greedy;
    int64_t before = ends.start;
    while (static_cast<int64_t>(greedy.size()) < 12) {
      before = model.table[b][static_cast<int64_t>(greedy.size())][before].argmax().item<int64_t>();
      if (before == ends.end) break;
      greedy.push_back(before);
    }
    EXPECT_EQ(found[static_cast<size_t>(b)][0].symbols, greedy);
  }
}

TEST(BeamSearch, SentencesTogetherAreSentencesAlone) {
  torch::manual_seed(33);
  TableModel model(10, 6);
  const std::vector<int64_t> longest = {3, 10, 1, 7, 10, 5};
  const BeamOptions options{.beam = 3, .nbest = 3};
  const auto together = beam_search(model, model.start(), longest, ends, options);
  for (int64_t b = 0; b < 6; ++b) {
    TableModel single(10, 1);
    single.table = model.table.slice(0, b, b + 1);
    const auto alone =
        beam_search(single, single.start(), {longest[static_cast<size_t>(b)]}, ends, options);
    ASSERT_EQ(alone[0].size(), together[static_cast<size_t>(b)].size());
    for (size_t i = 0; i < alone[0].size(); ++i) {
      EXPECT_EQ(alone[0][i].symbols, together[static_cast<size_t>(b)][i].symbols);
      EXPECT_EQ(alone[0][i].score, together[static_cast<size_t>(b)][i].score);
    }
  }
}

TEST(BeamSearch, WeightsFollowTheirHypothesis) {
  torch::manual_seed(34);
  TableModel model(8, 4);
  const BeamOptions options{.beam = 4, .nbest = 4, .with_weights = true};
  const auto found = beam_search(model, model.start(), {8, 8, 8, 8}, ends, options);
  for (size_t b = 0; b < 4; ++b) {
    for (const Hypothesis& hypothesis : found[b]) {
      if (hypothesis.symbols.empty()) continue;
      ASSERT_EQ(hypothesis.weights.size(0), static_cast<int64_t>(hypothesis.symbols.size()));
      for (size_t t = 0; t < hypothesis.symbols.size(); ++t) {
        const Tensor row = hypothesis.weights[static_cast<int64_t>(t)];
        EXPECT_EQ(row[0].item<float>(), static_cast<float>(b));
        EXPECT_EQ(row[1].item<float>(), static_cast<float>(t));
        const int64_t before = t == 0 ? ends.start : hypothesis.symbols[t - 1];
        EXPECT_EQ(row[2].item<float>(), static_cast<float>(before));
      }
    }
  }
}

TEST(BeamSearch, StopsAtTheLongestLengthAndSaysSo) {
  torch::manual_seed(35);
  TableModel model(6, 1);
  model.table.select(-1, ends.end).fill_(-1e9);
  const auto found = beam_search(model, model.start(), {6}, ends, {});
  EXPECT_EQ(found[0][0].symbols.size(), 6U);
  EXPECT_FALSE(found[0][0].complete);
  EXPECT_EQ(model.calls, 6);
}

TEST(BeamSearch, NoSentencesGiveNoAnswers) {
  TableModel model(2, 0);
  EXPECT_TRUE(beam_search(model, model.start(), {}, ends, {}).empty());
}

TEST(BeamSearch, RefusesOptionsOutOfRangeAndNaN) {
  TableModel model(2, 1);
  const auto search = [&](const BeamOptions& options) {
    return beam_search(model, model.start(), {2}, ends, options);
  };
  EXPECT_THROW(search({.beam = 0}), Error);
  EXPECT_THROW(search({.beam = 2, .nbest = 3}), Error);
  EXPECT_THROW(search({.beam = 2, .nbest = 0}), Error);
  EXPECT_THROW(search({.length_penalty = -1}), Error);
  model.table.fill_(std::nan(""));
  EXPECT_THROW(search({}), Error);
}

}  // namespace
}  // namespace attend
