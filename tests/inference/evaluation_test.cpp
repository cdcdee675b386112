// Tests of evaluations with unseen labels, unread tokens and masks.
#include "attend/inference/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/inference/untrained_model.h"
#include "tests/support/files.h"

namespace attend {
namespace evaluation_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

double figure(const Model& model, const std::string& name, const std::vector<Example>& examples) {
  const Metric& metric = metric_named(name);
  return measure_answers(metric, evaluate(model, examples, {}).answers, metric_options(model));
}

TEST(Evaluation, CountsLabelsThatTrainingLacksAsWrong) {
  const Model model(test::untrained_model("classifier"));
  const std::vector<Example> examples = {{"cab", {"K"}}, {"bad", {"new"}, 7}, {"dab", {"B"}}};
  const std::vector<Example> known = {examples[0], examples[2]};
  std::vector<std::string> said;
  model.check_labels(examples, "t.tsv", [&](const std::string& line) { said.push_back(line); });
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("t.tsv: training lacks 1 label of 1 target"),
                                      HasSubstr("'new' in t.tsv:7"))));
  EXPECT_THAT(test::error_of([&] { model.check_labels(examples, "t.tsv"); }),
              HasSubstr("label 'new' of 'bad' was not in training"));
  EXPECT_DOUBLE_EQ(figure(model, "accuracy", examples), figure(model, "accuracy", known) * 2 / 3);
  const Likelihood found = likelihood(model, examples), wanted = likelihood(model, known);
  EXPECT_EQ(found.tokens, 2);
  EXPECT_NEAR(found.nats, wanted.nats, 1e-5);
  EXPECT_EQ(found.unknown, 0);
  EXPECT_EQ(model.log_probabilities({examples[1]})[0], -std::numeric_limits<double>::infinity());
}

TEST(Evaluation, LeavesUnknownLabelsOfTokensOutOfTheLoss) {
  const std::vector<Example> examples = {{"cab", {"K B new"}}, {"bad", {"B B K"}}};
  const std::vector<Example> known = {{"cab", {"K B K"}}, examples[1]};
  const Model model(test::untrained_model("tagger"));
  const Likelihood found = likelihood(model, examples), whole = likelihood(model, known);
  EXPECT_EQ(found.tokens, 5);
  EXPECT_EQ(whole.tokens, 6);
  EXPECT_LT(found.nats, whole.nats);
  std::vector<std::string> said;
  model.check_labels(examples, "t.tsv", [&](const std::string& line) { said.push_back(line); });
  EXPECT_EQ(said.size(), 1U);
}

// The model reads only six tokens.
TEST(Evaluation, CountsTokensThatATaggerDoesNotReadAsWrong) {
  const Model model(test::untrained_model("tagger"));
  const std::vector<Example> examples = {{"cabcabcab", {"B B B B B B B B B"}}, {"cab", {"B K B"}}};
  const Evaluation evaluation = evaluate(model, examples, {});
  EXPECT_EQ(evaluation.truncated, 1);
  EXPECT_EQ(evaluation.unread, 3);
  EXPECT_EQ(evaluation.answers[0].tokens.size(), 6U);
  EXPECT_EQ(evaluation.answers[0].unread, 3);
  int64_t right = 0;
  for (const ScoredAnswer& answer : evaluation.answers)
    for (size_t i = 0; i < answer.tokens.size(); ++i)
      right += answer.tokens[i] == answer.reference_tokens[0][i];
  for (const char* name : {"accuracy", "token_accuracy"})
    EXPECT_DOUBLE_EQ(figure(model, name, examples), static_cast<double>(right) / 12) << name;
  EXPECT_LT(figure(model, "f1", examples), 1);
}

TEST(Evaluation, OfMasksDoesNotDependOnTheOrderOfLines) {
  const Model model(test::untrained_model("encoder"));
  std::vector<Example> lines;
  for (const char* text : {"cab", "bad", "dabc", "ba", "abcab", "dcba", "add", "cabbad", "b", "da"})
    lines.push_back({text, {text}});
  const Likelihood first = likelihood(model, lines);
  // A rounded share of each line's tokens is hidden, at least one.
  EXPECT_EQ(first.asked, 10);
  EXPECT_EQ(first.tokens, std::accumulate(lines.begin(), lines.end(), int64_t{0},
                                          [](int64_t sum, const Example& line) {
                                            return sum + std::ssize(line.source);
                                          }));
  for (int turn = 0; turn < 4; ++turn) {
    std::rotate(lines.begin(), lines.begin() + 3, lines.end());
    EXPECT_NEAR(likelihood(model, lines).nats, first.nats, 1e-5 * first.nats) << turn;
  }
}

}  // namespace evaluation_test
}  // namespace attend
