#include "attend/decode/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "tests/decode/table_model.h"
#include "tests/support/files.h"

namespace attend {
namespace search_test {

using at::Tensor;

using test::ends;
using test::TableModel;
using test::tasks_of;
using test::tokens;
using testing::HasSubstr;

struct Scored {
  std::vector<int64_t> sequence;
  double score;
};

// The formulas in the comments of the options, by loops.
double score_of(const TableModel& model, const std::vector<int64_t>& sequence, double log_p,
                const SearchOptions& options) {
  const auto length = static_cast<double>(sequence.size() + 1);
  const double base = options.length_penalty_form == LengthPenalty::wu ? (5 + length) / 6 : length;
  double score = log_p / std::pow(base, options.length_penalty);
  if (options.coverage_penalty == 0 || sequence.empty()) return score;
  for (int64_t i = 0; i < 3; ++i) {
    double covered = 0;
    int64_t before = ends.bos;
    for (size_t j = 0; j < sequence.size(); ++j) {
      covered += model.attention[static_cast<int64_t>(j)][before][i].item<float>();
      before = sequence[j];
    }
    score += options.coverage_penalty * std::log(std::min(covered, 1.0));
  }
  return score;
}

// Every complete sequence of up to `longest` tokens, best first.
std::vector<Scored> exhaustive(const TableModel& model, int64_t sentence, int64_t longest,
                               const SearchOptions& options) {
  std::vector<Scored> all;
  const auto visit = [&](auto&& self, std::vector<int64_t>& prefix, double log_p) -> void {
    const auto step = static_cast<int64_t>(prefix.size());
    const int64_t before = prefix.empty() ? ends.bos : prefix.back();
    for (int64_t next = 0; next < tokens; ++next) {
      const double total = log_p + model.log_probability(sentence, step, before, next);
      if (next == ends.eos) {
        if (step >= options.minimum_length)
          all.push_back({prefix, score_of(model, prefix, total, options)});
        continue;
      }
      if (step == longest) continue;
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

// A sentence's exclusions apply to all its answers, and not to other sentences.
TEST(BeamSearch, LeavesOutWhatASentenceExcludes) {
  torch::manual_seed(8);
  TableModel model(1, 2);
  std::vector<SearchTask> tasks = tasks_of({1, 1});
  for (SearchTask& task : tasks) task.length = 1;
  tasks[0].never = {2};
  const SearchOptions options{.beam = 3, .nbest = 3};
  const auto found = search(model.start(), tasks, ends, options);
  const auto tokens_of = [](const std::vector<Candidate>& hypotheses) {
    std::vector<int64_t> all;
    for (const Candidate& each : hypotheses) all.push_back(each.ids.at(0));
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(tokens_of(found[0]), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(tokens_of(found[1]), (std::vector<int64_t>{0, 2, 3}));
  SearchOptions drawn{.nbest = 50};
  drawn.sampling = Sampling{.temperature = 100};
  const auto others = search(model.start(), tasks, ends, drawn);
  for (const Candidate& each : others[0]) EXPECT_NE(each.ids.at(0), 2);
}

// Impossible answers are not returned, for any beam.
TEST(BeamSearch, LeavesOutWhatHasNoProbability) {
  TableModel model(2, 1);
  const double no = -std::numeric_limits<double>::infinity();
  const double half = std::log(0.5);
  const Tensor first = torch::tensor({no, no, half, half}, torch::kDouble);
  const Tensor then = torch::tensor({no, 0.0, no, no}, torch::kDouble);
  model.table = torch::stack({first.expand({4, 4}), then.expand({4, 4})}).unsqueeze(0);
  const auto found = search(model.start(), tasks_of({2}), ends, {.beam = 4, .nbest = 4})[0];
  ASSERT_EQ(found.size(), 2U);
  for (const Candidate& hypothesis : found) {
    EXPECT_EQ(hypothesis.ids.size(), 1U);
    EXPECT_EQ(hypothesis.log_probability, half);
    EXPECT_TRUE(hypothesis.complete);
  }
}

class Ranking : public testing::TestWithParam<SearchOptions> {};
INSTANTIATE_TEST_SUITE_P(
    Options, Ranking,
    testing::Values(SearchOptions{.length_penalty = 0}, SearchOptions{.length_penalty = 0.6},
                    SearchOptions{.length_penalty = 1}, SearchOptions{.minimum_length = 3},
                    SearchOptions{.length_penalty = 0.6, .length_penalty_form = LengthPenalty::wu},
                    SearchOptions{.length_penalty = 0.8,
                                  .length_penalty_form = LengthPenalty::wu,
                                  .coverage_penalty = 0.4}));

// With a beam as wide as the tree, beam search is exhaustive.
TEST_P(Ranking, WideBeamFindsWhatExhaustiveSearchFinds) {
  torch::manual_seed(31);
  constexpr int64_t longest = 4;
  TableModel model(longest, 3);
  model.attention = torch::rand({longest + 1, tokens, 3});
  SearchOptions options = GetParam();
  options.beam = 400;
  options.nbest = 10;
  const auto found = search(model.start(), tasks_of({longest, longest, longest}), ends, options);
  for (int64_t b = 0; b < 3; ++b) {
    const auto expected = exhaustive(model, b, longest, options);
    const auto& hypotheses = found[static_cast<size_t>(b)];
    ASSERT_EQ(hypotheses.size(), 10U);
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(hypotheses[i].ids, expected[i].sequence);
      EXPECT_NEAR(hypotheses[i].score, expected[i].score, 1e-12);
      EXPECT_TRUE(hypotheses[i].complete);
      EXPECT_TRUE(hypotheses[i].weights.empty());
    }
  }
}

TEST(BeamSearch, WidthOneIsGreedy) {
  torch::manual_seed(32);
  TableModel model(12, 5);
  const auto found = search(model.start(), tasks_of(std::vector<int64_t>(5, 12)), ends, {});
  for (int64_t b = 0; b < 5; ++b) {
    std::vector<int64_t> greedy;
    int64_t before = ends.bos;
    while (static_cast<int64_t>(greedy.size()) < 12) {
      before = model.table[b][static_cast<int64_t>(greedy.size())][before].argmax().item<int64_t>();
      if (before == ends.eos) break;
      greedy.push_back(before);
    }
    EXPECT_EQ(found[static_cast<size_t>(b)][0].ids, greedy);
  }
}

TEST(BeamSearch, SentencesTogetherAreSentencesAlone) {
  torch::manual_seed(33);
  TableModel model(10, 6);
  const std::vector<int64_t> longest = {3, 10, 1, 7, 10, 5};
  const SearchOptions options{.beam = 3, .nbest = 3};
  const auto together = search(model.start(), tasks_of(longest), ends, options);
  for (int64_t b = 0; b < 6; ++b) {
    TableModel single(10, 1);
    single.table = model.table.slice(0, b, b + 1);
    const auto alone =
        search(single.start(), tasks_of({longest[static_cast<size_t>(b)]}), ends, options);
    ASSERT_EQ(alone[0].size(), together[static_cast<size_t>(b)].size());
    for (size_t i = 0; i < alone[0].size(); ++i) {
      EXPECT_EQ(alone[0][i].ids, together[static_cast<size_t>(b)][i].ids);
      EXPECT_EQ(alone[0][i].score, together[static_cast<size_t>(b)][i].score);
    }
  }
}

TEST(BeamSearch, WeightsFollowTheirCandidate) {
  torch::manual_seed(34);
  TableModel model(8, 4);
  const SearchOptions options{.beam = 4, .nbest = 4, .with_weights = true};
  const auto found = search(model.start(), tasks_of({8, 8, 8, 8}), ends, options);
  for (size_t b = 0; b < 4; ++b) {
    for (const Candidate& hypothesis : found[b]) {
      if (hypothesis.ids.empty()) continue;
      ASSERT_EQ(hypothesis.weights.size(), hypothesis.ids.size());
      for (size_t t = 0; t < hypothesis.ids.size(); ++t) {
        const std::vector<float>& row = hypothesis.weights[t];
        EXPECT_EQ(row[0], static_cast<float>(b));
        EXPECT_EQ(row[1], static_cast<float>(t));
        const int64_t before = t == 0 ? ends.bos : hypothesis.ids[t - 1];
        EXPECT_EQ(row[2], static_cast<float>(before));
      }
    }
  }
}

TEST(BeamSearch, StopsAtTheLongestLengthAndSaysSo) {
  torch::manual_seed(35);
  TableModel model(6, 1);
  model.table.select(-1, ends.eos).fill_(-1e9);
  const auto found = search(model.start(), tasks_of({6}), ends, {});
  EXPECT_EQ(found[0][0].ids.size(), 6U);
  EXPECT_FALSE(found[0][0].complete);
  EXPECT_EQ(model.calls, 7);
}

// Greedy search finds `2 3 end`; a beam of two also keeps `2 end`, which is less probable.
TEST(BeamSearch, AnswersOfTheLongestLengthMayEnd) {
  TableModel model(2, 1);
  const Tensor two = torch::tensor({0.0, 0.0, 1.0, 0.0}, torch::kDouble).log();
  const Tensor three = torch::tensor({0.0, 0.1, 0.1, 0.8}, torch::kDouble).log();
  const Tensor end = torch::tensor({0.0, 0.9, 0.1, 0.0}, torch::kDouble).log();
  model.table =
      torch::stack({two.expand({4, 4}), three.expand({4, 4}), end.expand({4, 4})}).unsqueeze(0);
  for (const int64_t beam : {1, 2, 5}) {
    const Candidate found = search(model.start(), tasks_of({2}), ends, {.beam = beam})[0][0];
    EXPECT_EQ(found.ids, (std::vector<int64_t>{2, 3})) << beam;
    EXPECT_TRUE(found.complete);
    EXPECT_DOUBLE_EQ(found.log_probability, std::log(0.8) + std::log(0.9));
    EXPECT_EQ(found.log_probabilities.size(), 3U);
  }
  // After `2` another token is more probable than the end.
  const auto cut = search(model.start(), tasks_of({1}), ends, {});
  EXPECT_EQ(cut[0][0].ids, (std::vector<int64_t>{2}));
  EXPECT_FALSE(cut[0][0].complete);
}

// A limit keeps exactly the answers within it that an unlimited search finds.
TEST(BeamSearch, ALimitLosesNoAnswerThatFits) {
  torch::manual_seed(40);
  TableModel model(8, 6);
  const SearchOptions options{.beam = 4, .nbest = 4};
  const auto all = search(model.start(), tasks_of(std::vector<int64_t>(6, 8)), ends, options);
  const auto few = search(model.start(), tasks_of(std::vector<int64_t>(6, 3)), ends, options);
  const auto that_fit = [](const std::vector<Candidate>& found) {
    std::vector<std::vector<int64_t>> answers;
    for (const Candidate& each : found)
      if (each.complete && each.ids.size() <= 3) answers.push_back(each.ids);
    return answers;
  };
  size_t fitted = 0;
  for (size_t b = 0; b < 6; ++b) {
    EXPECT_EQ(that_fit(few[b]), that_fit(all[b]));
    EXPECT_EQ(few[b].size(), 4U);
    fitted += that_fit(few[b]).size();
  }
  EXPECT_GT(fitted, 0U);
  EXPECT_LT(fitted, 24U);
}

TEST(BeamSearch, ExcludedTokensComeInNoAnswer) {
  torch::manual_seed(41);
  TableModel model(4, 3);
  SpecialTokens special = ends;
  special.never = {0, 3};
  auto tasks = tasks_of({4, 4, 4});
  tasks[1].prefix = {3};
  const auto found = search(model.start(), tasks, special, {.beam = 9, .nbest = 9});
  for (size_t b = 0; b < 3; ++b)
    for (const Candidate& hypothesis : found[b])
      for (size_t t = b == 1 ? 1 : 0; t < hypothesis.ids.size(); ++t)
        EXPECT_EQ(hypothesis.ids[t], 2);
  EXPECT_EQ(found[1][0].ids[0], 3) << "it is the given prefix";
  EXPECT_EQ(found[0].size(), 5U) << "lengths 0 to 4";
}

TEST(BeamSearch, NoSentencesGiveNoAnswers) {
  TableModel model(2, 0);
  EXPECT_TRUE(search(model.start(), {}, ends, {}).empty());
}

TEST(BeamSearch, LogProbabilitiesAreOfEachTokenAndTheEnd) {
  torch::manual_seed(36);
  TableModel model(6, 2);
  const auto found = search(model.start(), tasks_of({3, 6}), ends, {.beam = 4, .nbest = 4});
  for (size_t b = 0; b < 2; ++b) {
    for (const Candidate& hypothesis : found[b]) {
      std::vector<int64_t> all = hypothesis.ids;
      if (hypothesis.complete) all.push_back(ends.eos);
      ASSERT_EQ(hypothesis.log_probabilities.size(), all.size());
      int64_t before = ends.bos;
      double total = 0;
      for (size_t t = 0; t < all.size(); ++t) {
        EXPECT_EQ(hypothesis.log_probabilities[t],
                  model.log_probability(static_cast<int64_t>(b), static_cast<int64_t>(t), before,
                                        all[t]));
        total += hypothesis.log_probabilities[t];
        before = all[t];
      }
      EXPECT_DOUBLE_EQ(hypothesis.log_probability, total);
    }
  }
}

TEST(BeamSearch, TellsTheMostProbableTokensBesideEach) {
  torch::manual_seed(44);
  TableModel model(5, 2);
  for (const int64_t beam : {1, 3}) {
    const SearchOptions plain{.beam = beam, .nbest = beam};
    SearchOptions told = plain;
    told.alternatives = 2;
    const auto wanted = search(model.start(), tasks_of({5, 5}), ends, plain);
    const auto found = search(model.start(), tasks_of({5, 5}), ends, told);
    for (size_t b = 0; b < 2; ++b) {
      ASSERT_EQ(found[b].size(), wanted[b].size());
      for (size_t i = 0; i < found[b].size(); ++i) {
        const Candidate& hypothesis = found[b][i];
        EXPECT_EQ(hypothesis.ids, wanted[b][i].ids) << "alternatives change no answer";
        EXPECT_TRUE(wanted[b][i].alternatives.empty());
        ASSERT_EQ(hypothesis.alternatives.size(), hypothesis.log_probabilities.size());
        int64_t before = ends.bos;
        for (size_t t = 0; t < hypothesis.alternatives.size(); ++t) {
          const auto row = model.table[static_cast<int64_t>(b)][static_cast<int64_t>(t)][before];
          const auto [values, best] = row.sort(/*dim=*/0, /*descending=*/true);
          for (const int64_t place : {0, 1})
            EXPECT_EQ(hypothesis.alternatives[t].at(static_cast<size_t>(place)),
                      (Alternative{best[place].item<int64_t>(), values[place].item<double>()}));
          EXPECT_EQ(hypothesis.alternatives[t].size(), 2U);
          if (t < hypothesis.ids.size()) before = hypothesis.ids[t];
        }
      }
    }
  }
}

// Compares with exhaustive search over answers with the prefix; a sentence without prefix runs
// along.
TEST(Prefix, IsWhatTheAnswerBeginsWith) {
  torch::manual_seed(37);
  constexpr int64_t longest = 4;
  TableModel model(longest, 3);
  auto tasks = tasks_of({longest, longest, longest});
  tasks[0].prefix = {3};
  tasks[2].prefix = {2, 2, 0};
  const SearchOptions options{.beam = 400, .nbest = 3};
  const auto found = search(model.start(), tasks, ends, options);
  for (size_t b = 0; b < 3; ++b) {
    auto expected = exhaustive(model, static_cast<int64_t>(b), longest, options);
    std::erase_if(expected, [&](const Scored& each) {
      const auto& prefix = tasks[b].prefix;
      return each.sequence.size() < prefix.size() ||
             !std::equal(prefix.begin(), prefix.end(), each.sequence.begin());
    });
    // Complete answers, which rank before cut ones.
    const size_t complete = std::min<size_t>(expected.size(), 3);
    ASSERT_EQ(found[b].size(), 3U);
    for (size_t i = 0; i < complete; ++i) {
      EXPECT_EQ(found[b][i].ids, expected[i].sequence);
      EXPECT_NEAR(found[b][i].score, expected[i].score, 1e-12);
    }
    EXPECT_EQ(complete == 3, found[b][2].complete);
  }
}

TEST(Prefix, MayBeWhatTheModelHoldsImpossible) {
  TableModel model(3, 1);
  model.table.select(-1, 2).fill_(-std::numeric_limits<double>::infinity());
  auto tasks = tasks_of({3});
  tasks[0].prefix = {2};
  const Candidate found = search(model.start(), tasks, ends, {})[0][0];
  EXPECT_EQ(found.ids[0], 2);
  EXPECT_EQ(found.log_probabilities[0], -std::numeric_limits<double>::infinity());
}

// Certain tokens have probability 1: answers rank by the rest, but lengths count all tokens.
TEST(Prefix, MayBeCertain) {
  torch::manual_seed(38);
  constexpr int64_t longest = 4;
  TableModel model(longest, 2);
  auto tasks = tasks_of({longest, longest});
  tasks[1].prefix = {3, 2};
  tasks[1].certain = 1;
  const SearchOptions options{.beam = 400, .nbest = 5, .length_penalty = 0.7, .minimum_length = 2};
  const auto found = search(model.start(), tasks, ends, options);
  SearchOptions shorter = options;
  shorter.minimum_length = 3;
  const double own = model.log_probability(1, 0, ends.bos, 3);
  std::vector<Scored> expected;
  for (Scored each : exhaustive(model, 1, longest, shorter)) {
    if (each.sequence.size() < 2 || each.sequence[0] != 3 || each.sequence[1] != 2) continue;
    const auto length = static_cast<double>(each.sequence.size() + 1);
    each.score -= own / std::pow(length, options.length_penalty);
    expected.push_back(each);
  }
  std::sort(expected.begin(), expected.end(),
            [](const auto& a, const auto& b) { return a.score > b.score; });
  ASSERT_GE(expected.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(found[1][i].ids, expected[i].sequence);
    EXPECT_NEAR(found[1][i].score, expected[i].score, 1e-12);
    EXPECT_EQ(found[1][i].log_probabilities[0], 0);
  }
  tasks[1].certain = 3;
  EXPECT_THAT(test::error_of([&] { search(model.start(), tasks, ends, options); }),
              HasSubstr("3 certain tokens in a prefix of 2"));
}

// These answers do not end by EOS: they are done at their given length.
TEST(BeamSearch, AnswersOfAGivenLength) {
  torch::manual_seed(39);
  TableModel model(4, 2);
  model.table.select(-1, ends.eos).add_(2);
  auto tasks = tasks_of({4, 2});
  for (SearchTask& task : tasks) task.length = 3;
  const auto found = search(model.start(), tasks, ends, {.beam = 4, .nbest = 4});
  for (const Candidate& whole : found[0]) {
    EXPECT_EQ(whole.ids.size(), 3U);
    EXPECT_EQ(whole.log_probabilities.size(), 3U);
    EXPECT_TRUE(whole.complete);
    EXPECT_NEAR(whole.score, whole.log_probability / 3, 1e-12);
  }
  for (const Candidate& cut : found[1]) {
    EXPECT_EQ(cut.ids.size(), 2U);
    EXPECT_FALSE(cut.complete) << "longest is 2";
  }
  ASSERT_EQ(found[0].size(), 4U);
  ASSERT_EQ(found[1].size(), 4U);
}

TEST(Search, RefusesWhatIsOutOfRangeAndNaN) {
  TableModel model(2, 1);
  const auto error = [&](const SearchOptions& options) {
    return test::error_of([&] { search(model.start(), tasks_of({2}), ends, options); });
  };
  EXPECT_THAT(error({.beam = 0}), HasSubstr("beam must be at least 1, got 0"));
  EXPECT_THAT(error({.beam = 2, .nbest = 3}), HasSubstr("nbest must be at most the beam 2, got 3"));
  EXPECT_THAT(error({.nbest = 0}), HasSubstr("nbest must be at least 1"));
  EXPECT_THAT(error({.length_penalty = -1}), HasSubstr("length_penalty must be at least 0"));
  EXPECT_THAT(error({.coverage_penalty = std::nan("")}), HasSubstr("coverage_penalty"));
  EXPECT_THAT(error({.minimum_length = -1}), HasSubstr("minimum_length"));
  EXPECT_THAT(error({.minimum_length = 5, .maximum_length = 2}),
              HasSubstr("minimum_length 5 is over maximum_length 2"));
  EXPECT_THAT(error({.alternatives = -1}), HasSubstr("alternatives must be at least 0"));
  EXPECT_THAT(error({.alternatives = 1, .sampling = Sampling{}}),
              HasSubstr("drawn answers have no alternatives"));
  EXPECT_THAT(error({.sampling = Sampling{.temperature = 0}}), HasSubstr("temperature"));
  EXPECT_THAT(error({.sampling = Sampling{.top_k = -1}}), HasSubstr("top_k"));
  EXPECT_THAT(error({.sampling = Sampling{.top_p = 0}}), HasSubstr("top_p"));
  EXPECT_THAT(error({.sampling = Sampling{.top_p = 1.1}}), HasSubstr("top_p"));
  model.attends = false;
  model.table.fill_(-1);
  EXPECT_THAT(error({.coverage_penalty = 1}), HasSubstr("the model attends to nothing"));
  auto tasks = tasks_of({2});
  tasks[0].prefix = {2, 2, 2};
  EXPECT_THAT(test::error_of([&] { search(model.start(), tasks, ends, {}); }),
              HasSubstr("a prefix of 3 tokens for an answer of at most 2"));
  model.table.fill_(std::nan(""));
  EXPECT_THAT(error({}), HasSubstr("NaN"));
  EXPECT_THAT(error({.beam = 2}), HasSubstr("NaN"));
  EXPECT_THAT(error({.sampling = Sampling{}}), HasSubstr("NaN"));
}

TEST(SearchOptions, TakeLengthsThatWereNotGivenAsFarAsOthersAllow) {
  const auto taken = [](int64_t minimum, int64_t maximum, const SearchOptions& own) {
    SearchOptions options{.minimum_length = minimum, .maximum_length = maximum};
    options.take_lengths(own, minimum > 0, maximum > 0);
    return std::pair(options.minimum_length, options.maximum_length);
  };
  const SearchOptions own{.minimum_length = 3, .maximum_length = 6};
  EXPECT_EQ(taken(0, 0, own), std::pair(3L, 6L));
  EXPECT_EQ(taken(0, 1, own), std::pair(1L, 1L));
  EXPECT_EQ(taken(8, 0, own), std::pair(8L, 8L));
  EXPECT_EQ(taken(5, 2, own), std::pair(5L, 2L));  // an error of check()
  EXPECT_EQ(taken(8, 0, {.minimum_length = 3}), std::pair(8L, 0L));
}

}  // namespace search_test
}  // namespace attend
