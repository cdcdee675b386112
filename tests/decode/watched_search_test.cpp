// Tests of searches that are stopped or report partial answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <map>
#include <utility>
#include <vector>

#include "attend/decode/search.h"
#include "tests/decode/table_model.h"
#include "tests/support/test_sink.h"

namespace attend {
namespace watched_search_test {

using test::ends;
using test::TableModel;
using test::tasks_of;

// Greedy search, a beam and sampling.
const std::vector<SearchOptions> all_options = {
    {}, {.beam = 3, .nbest = 3}, {.nbest = 3, .sampling = Sampling{.seed = 5}}};

// EOS is improbable, so that answers have the longest length.
TableModel long_answers(int64_t longest, int64_t sentences) {
  torch::manual_seed(41);
  TableModel model(longest, sentences);
  model.table.select(-1, ends.eos).sub_(20);
  return model;
}

void expect_equal(const std::vector<Candidate>& found, const std::vector<Candidate>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].ids, wanted[i].ids);
    EXPECT_EQ(found[i].log_probabilities, wanted[i].log_probabilities);
    EXPECT_EQ(found[i].score, wanted[i].score);
  }
}

TEST(WatchedSearch, AStoppedSentenceLeavesTheOthersAsTheyAre) {
  for (const SearchOptions& options : all_options) {
    TableModel model = long_answers(6, 3);
    const auto wanted = search(model.start(), tasks_of({6, 6, 6}), ends, options);
    auto tasks = tasks_of({6, 6, 6});
    int asked = 0;
    test::TestSink stops;
    stops.is_cancelled = [&](size_t) { return ++asked > 2; };  // before the third step
    tasks[1].sink = &stops;
    const auto found = search(model.start(), tasks, ends, options);
    EXPECT_EQ(asked, 3);
    for (const Candidate& cut : found[1]) {
      EXPECT_EQ(cut.ids.size(), 2U);
      EXPECT_FALSE(cut.complete);
    }
    EXPECT_FALSE(found[1].empty());
    for (const size_t other : {0U, 2U}) expect_equal(found[other], wanted[other]);
  }
}

TEST(WatchedSearch, EndsWhereAllAreStopped) {
  for (const SearchOptions& options : all_options)
    for (const int64_t length : {0, 4}) {
      TableModel model = long_answers(6, 2);
      auto tasks = tasks_of({6, 6});
      test::TestSink stops;
      stops.is_cancelled = [&](size_t) { return model.calls >= 1; };
      for (SearchTask& task : tasks) {
        task.length = length;
        task.sink = &stops;
      }
      EXPECT_EQ(search(model.start(), tasks, ends, options)[0][0].ids.size(), 1U);
      EXPECT_EQ(model.calls, 1);
      const auto at_once = search(model.start(), tasks, ends, options);
      EXPECT_EQ(model.calls, 1);
      EXPECT_TRUE(at_once[0][0].ids.empty());
      EXPECT_EQ(at_once[0][0].score, 0);
    }
}

TEST(WatchedSearch, TellsTheTokensOfItsAnswers) {
  for (const bool draws : {false, true}) {
    torch::manual_seed(42);
    TableModel model(5, 2);
    SearchOptions options{.nbest = draws ? 3 : 1, .with_weights = true};
    if (draws) options.sampling = Sampling{.seed = 6};
    auto tasks = tasks_of({5, 3});
    tasks[1].prefix = {2};
    std::map<std::pair<size_t, size_t>, Candidate> grown;
    test::TestSink sink;
    sink.grows = [&](size_t b, size_t answer, const Candidate& so_far) {
      Candidate& last = grown[{b, answer}];
      EXPECT_EQ(so_far.ids.size(), last.ids.size() + 1);
      last = so_far;
    };
    for (SearchTask& task : tasks) {
      task.sink = &sink;
      task.streams = true;
    }
    const auto found = search(model.start(), tasks, ends, options);
    for (size_t b = 0; b < 2; ++b)
      for (size_t answer = 0; answer < found[b].size(); ++answer) {
        Candidate whole = found[b][answer];
        const Candidate& last = grown[{b, answer}];
        EXPECT_EQ(last.ids, whole.ids);
        EXPECT_EQ(last.weights, whole.weights);
        whole.log_probabilities.resize(whole.ids.size());
        EXPECT_EQ(last.log_probabilities, whole.log_probabilities);
      }
  }
}

TEST(WatchedSearch, ABeamTellsNothing) {
  TableModel model = long_answers(3, 1);
  auto tasks = tasks_of({3});
  int told = 0;
  test::TestSink sink;
  sink.grows = [&](size_t, size_t, const Candidate&) { ++told; };
  tasks[0].sink = &sink;
  tasks[0].streams = true;
  search(model.start(), tasks, ends, {.beam = 2});
  EXPECT_EQ(told, 0);
}

}  // namespace watched_search_test
}  // namespace attend
