// Tests of sentences that join a running search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <map>
#include <optional>
#include <vector>

#include "attend/decode/search.h"
#include "tests/decode/table_model.h"
#include "tests/support/files.h"

namespace attend {
namespace joined_search_test {

using test::ends;
using test::TableModel;

constexpr int64_t longest = 6, sentences = 7;

TableModel some_model() {
  torch::manual_seed(43);
  return TableModel(longest, sentences);
}

// Greedy search, beams, minimum lengths and sampling.
const std::vector<SearchOptions> all_options = {
    {},
    {.beam = 3, .nbest = 3},
    {.beam = 2, .minimum_length = 3},
    {.minimum_length = 2},
    {.nbest = 3, .minimum_length = 2, .sampling = Sampling{.seed = 5}}};

// Some sentences have a prefix, and some have excluded tokens.
SearchTask task_of(int64_t sentence) {
  SearchTask task{.longest = longest - sentence % 3, .source_length = 3};
  task.number = static_cast<size_t>(sentence);
  if (sentence % 2 == 1) task.prefix = {3};
  if (sentence % 3 == 2) task.never = {2};
  return task;
}

// The candidates of each sentence that is done.
struct Results : Sink {
  bool cancelled(size_t number) override { return number == leaving; }
  void done(size_t number, Answer answer) override {
    const auto sentence = static_cast<int64_t>(number);
    EXPECT_FALSE(found.contains(sentence));
    found[sentence] = std::move(answer.candidates);
  }

  std::map<int64_t, std::vector<Candidate>> found;
  std::optional<size_t> leaving;
};

SearchTask told(int64_t sentence, Results& results) {
  SearchTask task = task_of(sentence);
  task.sink = &results;
  return task;
}

void add(Search& search, TableModel& model, const std::vector<int64_t>& numbers, Results& results) {
  std::vector<SearchTask> tasks;
  for (const int64_t sentence : numbers) tasks.push_back(told(sentence, results));
  search.add(model.start(torch::tensor(numbers)), std::move(tasks));
}

void expect_alone(TableModel& model, const SearchOptions& options, int64_t sentence,
                  const std::vector<Candidate>& found) {
  const auto alone =
      search(model.start(torch::tensor({sentence})), {task_of(sentence)}, ends, options)[0];
  ASSERT_EQ(found.size(), alone.size()) << sentence;
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(found[i].ids, alone[i].ids) << sentence;
    EXPECT_EQ(found[i].log_probabilities, alone[i].log_probabilities) << sentence;
    EXPECT_EQ(found[i].score, alone[i].score) << sentence;
    EXPECT_EQ(found[i].complete, alone[i].complete) << sentence;
  }
}

TEST(JoinedSearch, FindsWhatEachSentenceHasAlone) {
  for (const SearchOptions& options : all_options)
    for (int64_t apart = 1; apart <= 4; ++apart) {
      TableModel model = some_model();
      Search search(ends, options);
      Results results;
      add(search, model, {4, 0}, results);
      for (int64_t steps = 1; !search.is_done() || results.found.size() < sentences; ++steps) {
        if (steps == apart) add(search, model, {1, 5, 2}, results);
        if (steps == 2 * apart) add(search, model, {6}, results);
        if (steps == 2 * apart + 1) add(search, model, {3}, results);
        if (!search.is_done()) search.step();
      }
      for (const auto& [sentence, found] : results.found)
        expect_alone(model, options, sentence, found);
    }
}

TEST(JoinedSearch, TellsASentenceAsSoonAsItIsDone) {
  TableModel model = some_model();
  Search search(ends, {});
  Results results;
  SearchTask brief = told(0, results), other = told(1, results);
  brief.longest = 1;
  brief.prefix = {2};
  search.add(model.start(torch::tensor({1})), {other});
  search.step();
  search.add(model.start(torch::tensor({0})), {brief});
  search.step();
  search.step();  // the prefix ends or is cut in this step
  EXPECT_TRUE(results.found.contains(0));
}

TEST(JoinedSearch, WhoLeavesChangesNoAnswer) {
  for (const SearchOptions& options : all_options) {
    TableModel model = some_model();
    Search search(ends, options);
    Results results;
    add(search, model, {0, 6}, results);
    search.step();
    search.add(model.start(torch::tensor({3, 1})), {told(3, results), told(1, results)});
    search.step();
    results.leaving = 3;
    if (!search.is_done()) search.step();
    EXPECT_TRUE(results.found.contains(3));
    results.found.erase(3);
    while (!search.is_done()) search.step();
    ASSERT_EQ(results.found.size(), 3U);
    for (const auto& [sentence, found] : results.found)
      expect_alone(model, options, sentence, found);
  }
}

TEST(JoinedSearch, TakesNoMoreWhereWeightsAreWanted) {
  TableModel model = some_model();
  Search search(ends, {.minimum_length = 3, .with_weights = true});
  Results results;
  EXPECT_TRUE(search.takes_more());
  add(search, model, {0}, results);
  EXPECT_FALSE(search.takes_more());
  EXPECT_THAT(test::error_of([&] { add(search, model, {1}, results); }),
              testing::HasSubstr("takes_more()"));
  while (!search.is_done()) search.step();
  add(search, model, {1}, results);
  EXPECT_FALSE(search.is_done());
}

}  // namespace joined_search_test
}  // namespace attend
