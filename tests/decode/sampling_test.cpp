#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <map>

#include "attend/base/error.h"
#include "tests/decode/table_model.h"

namespace attend {
namespace sampling_test {

using at::Tensor;
using test::ends;
using test::TableModel;
using test::tasks_of;
using test::tokens;

constexpr int64_t draws = 20000;

// Counts of first tokens in `draws` answers to one sentence.
std::vector<int64_t> first_tokens(TableModel& model, const Sampling& sampling) {
  const auto found =
      search(model.start(), tasks_of({1}), ends, {.nbest = draws, .sampling = sampling})[0];
  EXPECT_EQ(found.size(), static_cast<size_t>(draws));
  std::vector<int64_t> counts(tokens);
  for (const Candidate& hypothesis : found)
    ++counts[static_cast<size_t>(hypothesis.ids.empty() ? ends.eos : hypothesis.ids[0])];
  return counts;
}

// Five deviations of a binomial: a correct sampler fails once in two million sets of draws, and the
// seed is fixed.
void expect_frequencies(const std::vector<int64_t>& counts, const std::vector<double>& expected) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const double mean = static_cast<double>(draws) * expected[i];
    EXPECT_NEAR(static_cast<double>(counts[i]), mean, 5 * std::sqrt(mean * (1 - expected[i])))
        << "token " << i;
  }
}

TableModel model_of(const std::vector<double>& probabilities) {
  TableModel model(1, 1);
  model.table = torch::tensor(at::ArrayRef<double>(probabilities), torch::kDouble)
                    .log()
                    .expand({1, 2, tokens, tokens});
  return model;
}

const std::vector<double> probabilities = {0.1, 0.2, 0.4, 0.3};

TEST(Sampling, FollowsTheProbabilities) {
  TableModel model = model_of(probabilities);
  expect_frequencies(first_tokens(model, {}), probabilities);
}

TEST(Sampling, TemperatureIsAPowerOfTheProbabilities) {
  TableModel model = model_of(probabilities);
  for (const double temperature : {0.5, 2.0}) {
    std::vector<double> expected;
    double sum = 0;
    for (const double p : probabilities) sum += expected.emplace_back(std::pow(p, 1 / temperature));
    for (double& p : expected) p /= sum;
    expect_frequencies(first_tokens(model, {.temperature = temperature}), expected);
  }
}

TEST(Sampling, TopKKeepsTheMostProbable) {
  TableModel model = model_of(probabilities);
  expect_frequencies(first_tokens(model, {.top_k = 2}), {0, 0, 4.0 / 7, 3.0 / 7});
  expect_frequencies(first_tokens(model, {.top_k = 1}), {0, 0, 1, 0});
  expect_frequencies(first_tokens(model, {.top_k = 9}), probabilities);
}

TEST(Sampling, TopPKeepsTheFewestThatHaveIt) {
  TableModel model = model_of(probabilities);
  expect_frequencies(first_tokens(model, {.top_p = 0.65}), {0, 0, 4.0 / 7, 3.0 / 7});
  expect_frequencies(first_tokens(model, {.top_p = 0.75}), {0, 2.0 / 9, 4.0 / 9, 3.0 / 9});
  expect_frequencies(first_tokens(model, {.top_p = 0.1}), {0, 0, 1, 0});
  // top_k keeps two tokens, with 4/7 and 3/7; the first reaches one half.
  expect_frequencies(first_tokens(model, {.top_k = 2, .top_p = 0.5}), {0, 0, 1, 0});
}

TEST(Sampling, NeverDrawsWhatHasNoProbability) {
  TableModel model = model_of({0, 0.5, 0.5, 0});
  expect_frequencies(first_tokens(model, {}), {0, 0.5, 0.5, 0});
}

// Pairs of tokens, which are independent given the first.
TEST(Sampling, DrawsEachStepAnew) {
  torch::manual_seed(41);
  TableModel model(2, 1);
  model.table.select(-1, ends.eos).fill_(-std::numeric_limits<double>::infinity());
  model.table = model.table.log_softmax(-1);
  const auto found = search(model.start(), tasks_of({2}), ends,
                            {.nbest = draws, .sampling = Sampling{.seed = 7}})[0];
  std::map<std::vector<int64_t>, int64_t> counts;
  for (const Candidate& hypothesis : found) ++counts[hypothesis.ids];
  std::vector<int64_t> seen;
  std::vector<double> expected;
  for (const int64_t first : {0, 2, 3}) {
    for (const int64_t second : {0, 2, 3}) {
      seen.push_back(counts[{first, second}]);
      expected.push_back(std::exp(model.log_probability(0, 0, ends.bos, first) +
                                  model.log_probability(0, 1, first, second)));
    }
  }
  expect_frequencies(seen, expected);
}

TEST(Sampling, LogProbabilitiesAreTheModels) {
  TableModel model = model_of(probabilities);
  const Candidate found = search(model.start(), tasks_of({1}), ends,
                                 {.sampling = Sampling{.temperature = 0.1, .top_k = 1}})[0][0];
  EXPECT_DOUBLE_EQ(found.log_probabilities[0], std::log(0.4));
}

// The other tokens keep their relative probabilities.
TEST(Sampling, NeverDrawsWhatIsExcluded) {
  TableModel model = model_of(probabilities);
  SpecialTokens special = ends;
  special.never = {0, 3};
  const auto found = search(model.start(), tasks_of({1}), special,
                            {.nbest = draws, .sampling = Sampling{.temperature = 2}})[0];
  std::vector<int64_t> counts(tokens);
  for (const Candidate& hypothesis : found)
    ++counts[static_cast<size_t>(hypothesis.ids.empty() ? ends.eos : hypothesis.ids[0])];
  const double end = std::sqrt(0.2), other = std::sqrt(0.4);
  expect_frequencies(counts, {0, end / (end + other), other / (end + other), 0});
}

// The answers of a sentence depend only on its stream, not on the other sentences.
TEST(Sampling, SentencesTogetherAreSentencesAlone) {
  torch::manual_seed(42);
  TableModel model(10, 6);
  const std::vector<int64_t> longest = {3, 10, 1, 7, 10, 5};
  const SearchOptions options{.nbest = 3, .sampling = Sampling{.seed = 3}};
  const auto together = search(model.start(), tasks_of(longest), ends, options);
  for (int64_t b = 0; b < 6; ++b) {
    TableModel single(10, 1);
    single.table = model.table.slice(0, b, b + 1);
    const SearchTask task = tasks_of(longest)[static_cast<size_t>(b)];
    const auto alone = search(single.start(), {task}, ends, options)[0];
    ASSERT_EQ(alone.size(), 3U);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(alone[i].ids, together[static_cast<size_t>(b)][i].ids);
  }
}

TEST(Sampling, SeedsStreamsAndAnswersDiffer) {
  torch::manual_seed(43);
  TableModel model(30, 2);
  model.table = model.table.slice(0, 0, 1).expand_as(model.table);  // the same sentence twice
  model.table.select(-1, ends.eos).fill_(-1e9);
  const auto answers = [&](uint64_t seed) {
    return search(model.start(), tasks_of({30, 30}), ends,
                  {.nbest = 2, .sampling = Sampling{.seed = seed}});
  };
  const auto one = answers(1), two = answers(2);
  EXPECT_NE(one[0][0].ids, one[0][1].ids);
  EXPECT_NE(one[0][0].ids, one[1][0].ids);
  EXPECT_NE(one[0][0].ids, two[0][0].ids);
  EXPECT_EQ(one[1][1].ids, answers(1)[1][1].ids);
}

TEST(Sampling, KeepsPrefixesAndTheMinimumLength) {
  torch::manual_seed(44);
  TableModel model(6, 2);
  auto tasks = tasks_of({6, 6});
  tasks[1].prefix = {3, 2};
  const auto found = search(model.start(), tasks, ends,
                            {.nbest = 50, .minimum_length = 3, .sampling = Sampling{}});
  for (const auto& hypotheses : found)
    for (const Candidate& hypothesis : hypotheses) EXPECT_GE(hypothesis.ids.size(), 3U);
  for (const Candidate& hypothesis : found[1]) {
    EXPECT_EQ(hypothesis.ids[0], 3);
    EXPECT_EQ(hypothesis.ids[1], 2);
  }
}

}  // namespace sampling_test
}  // namespace attend
