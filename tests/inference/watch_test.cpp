// Tests of partial answers and stopped answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "attend/inference/model.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/seq2seq_config.h"
#include "tests/inference/untrained_model.h"
#include "tests/support/test_sink.h"

namespace attend {
namespace watch_test {

const std::vector<Example> examples = {{"cab", {"K"}}, {"bad", {"B"}}, {"dab", {"K"}}};
const std::vector<std::string> texts = {"cab", "a", "bad", "", "abba", "dab", "zab"};

void expect_same(const Answer& found, const Answer& wanted) {
  ASSERT_EQ(found.candidates.size(), wanted.candidates.size());
  for (size_t i = 0; i < wanted.candidates.size(); ++i) {
    EXPECT_EQ(found.candidates[i].text, wanted.candidates[i].text);
    EXPECT_EQ(found.candidates[i].log_probabilities, wanted.candidates[i].log_probabilities);
    EXPECT_EQ(found.candidates[i].score, wanted.candidates[i].score);
  }
}

class Watched : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Watched,
                         testing::Values("seq2seq", "transformer", "classifier", "tagger", "lm",
                                         "encoder"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Watched, AnswersGrowIntoWhatTheyAre) {
  const Model model(test::untrained_model(GetParam()), {.threads = 2});
  for (const bool draws : {false, true}) {
    SearchOptions search{.nbest = draws ? 2 : 1, .maximum_length = 5};
    if (draws) search.sampling = Sampling{.seed = 4};
    std::mutex mutex;
    std::map<std::pair<size_t, size_t>, Candidate> grown;
    const auto wanted = model.answer(texts, search);
    test::TestSink sink([&](size_t source, const Answer& answer) {
      expect_same(answer, wanted[source]);
      for (size_t i = 0; i < answer.candidates.size(); ++i) {
        const std::lock_guard lock(mutex);
        const Candidate &whole = answer.candidates[i], &last = grown[{source, i}];
        EXPECT_EQ(last.ids, whole.ids);
        EXPECT_EQ(last.tokens, whole.tokens);
        EXPECT_EQ(last.text, whole.text);
        EXPECT_LE(last.log_probabilities.size(), whole.log_probabilities.size());
      }
    });
    sink.grows = [&](size_t source, size_t answer, const Candidate& so_far) {
      const std::lock_guard lock(mutex);
      Candidate& last = grown[{source, answer}];
      EXPECT_EQ(so_far.tokens.size(), last.tokens.size() + 1);
      last = so_far;
    };
    model.answer_each(test::streaming(requests_of(texts, search, &sink)));
  }
}

// With one thread, for which the inner call would otherwise wait.
TEST_P(Watched, WhoIsToldMayAskTheModel) {
  const Model model(test::untrained_model(GetParam()), {.threads = 1});
  const auto wanted = model.answer({"bad"});
  int told = 0;
  test::TestSink sink;
  sink.grows = [&](size_t, size_t, const Candidate&) {
    ++told;
    expect_same(model.answer({"bad"})[0], wanted[0]);
  };
  model.answer_each(
      test::streaming(requests_of(texts, {.minimum_length = 2, .maximum_length = 3}, &sink)));
  EXPECT_GT(told, 0);
}

// Stops before the first step or after some steps; other answers in the batch do not change.
TEST_P(Watched, AStoppedAnswerLeavesTheOthersAsTheyAre) {
  const Model one(test::untrained_model(GetParam()), {.threads = 2});
  const SearchOptions search{.beam = 2, .nbest = 2, .minimum_length = 4, .maximum_length = 6};
  const auto wanted = one.answer(texts, search);
  for (const int steps : {0, 1, 3}) {
    std::array<std::atomic<int>, 16> asked = {};
    test::TestSink sink([&](size_t source, const Answer& answer) {
      if (source % 2 == 1) return expect_same(answer, wanted[source]);
      for (const Candidate& candidate : answer.candidates)
        EXPECT_LE(std::ssize(candidate.tokens), steps);
    });
    sink.is_cancelled = [&](size_t source) { return source % 2 == 0 && asked[source]++ >= steps; };
    one.answer_each(requests_of(texts, search, &sink));
    for (size_t source = 0; source < texts.size(); ++source) EXPECT_LE(asked[source], steps + 1);
  }
}

TEST(WatchedCopies, GrowByTheTokensThatAreCopied) {
  torch::manual_seed(3);
  ModelConfig config;
  config.of<Seq2SeqConfig>().copy = true;
  TextConfig text;
  text.target_units = "char";
  text.joint_vocabulary = true;
  PairModel copies = make_pair_model(text, config, examples);
  copies.network->eval();
  // The gate only copies and never generates.
  copies.network->named_parameters()["gate.bias"].detach().fill_(-30);
  const Model model(copies, {.threads = 1});
  std::vector<std::string> grown;
  test::TestSink sink;
  sink.grows = [&](size_t, size_t, const Candidate& so_far) { grown.push_back(so_far.text); };
  model.answer_each(test::streaming(requests_of({"zz"}, {.maximum_length = 3}, &sink)));
  EXPECT_THAT(grown, testing::ElementsAre("z", "zz", "zzz"));
}

}  // namespace watch_test
}  // namespace attend
