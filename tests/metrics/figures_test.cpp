// Tests of metrics of numbers, rankings and spans. Unless a comment names another source, expected
// values are from scikit-learn 1.9; tools/sklearn_check.py compares more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "attend/base/error.h"
#include "attend/metrics/metric.h"

namespace attend {
namespace figures_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double accuracy = 1e-12;

std::vector<ScoredAnswer> texts(const std::vector<std::string>& answers,
                                const std::vector<std::string>& references) {
  std::vector<ScoredAnswer> all;
  for (size_t i = 0; i < answers.size(); ++i)
    all.push_back({.text = answers[i], .references = {references[i]}});
  return all;
}

double figure(const std::string& name, const std::vector<ScoredAnswer>& answers) {
  return measure_answers(metric_named(name), answers);
}

auto refusal(const std::string& name, const std::vector<ScoredAnswer>& answers) {
  return [=] { figure(name, answers); };
}

TEST(NumberMetrics, AreThoseOfScikitLearn) {
  const auto near = texts({"2.5", "0", "2", "8", " 7.25 "}, {"3", "-0.5", "2e0", "7", "7"});
  EXPECT_NEAR(figure("mse", near), 0.3125, accuracy);
  EXPECT_NEAR(figure("rmse", near), std::sqrt(0.3125), accuracy);
  EXPECT_NEAR(figure("mae", near), 0.45, accuracy);
  EXPECT_NEAR(figure("r2", near), 0.9634929906542056, accuracy);
}

// Sums of squares would lose the relevant digits.
TEST(NumberMetrics, KeepTheirDigitsFarFromZero) {
  const auto far = texts({"1000000.2", "1000000.3", "1000000.2", "1000000.6"},
                         {"1000000.1", "1000000.4", "1000000.2", "1000000.9"});
  EXPECT_NEAR(figure("mse", far), 0.027500000004656612, accuracy);
  EXPECT_NEAR(figure("r2", far), 0.7105263157830242, accuracy);
}

TEST(NumberMetrics, DeterminationOfOneValue) {
  EXPECT_EQ(figure("r2", texts({"2", "2"}, {"2", "2"})), 1);
  EXPECT_EQ(figure("r2", texts({"2", "3"}, {"2", "2"})), 0);
  // The mean of three times 0.1 is not 0.1.
  EXPECT_EQ(figure("r2", texts({"0.1", "0.1", "0.2"}, {"0.1", "0.1", "0.1"})), 0);
  EXPECT_EQ(figure("r2", texts({"0.1", "0.1", "0.1"}, {"0.1", "0.1", "0.1"})), 1);
  EXPECT_THAT(refusal("r2", texts({"2"}, {"2"})),
              ThrowsMessage<Error>(HasSubstr("two answers or more")));
}

TEST(NumberMetrics, RankClassesWithTies) {
  const auto scores = texts({".1", ".4", ".35", ".8", ".8", ".4", ".4", ".05"},
                            {"0", "1", "1", "0", "1", "0", "1", "0"});
  EXPECT_NEAR(figure("roc_auc", scores), 0.65625, accuracy);
  EXPECT_NEAR(figure("average_precision", scores), 0.5916666666666667, accuracy);
  const auto same = texts({"1", "1", "-0", "0"}, {"1", "0", "1", "0"});
  EXPECT_EQ(figure("roc_auc", same), 0.5);
  EXPECT_THAT(refusal("roc_auc", texts({"1", "2"}, {"1", "1"})),
              ThrowsMessage<Error>(HasSubstr("2 of class 1 and 0 of class 0")));
  EXPECT_EQ(figure("average_precision", texts({"1", "2", "1"}, {"1", "1", "1"})), 1);
  EXPECT_THAT(refusal("average_precision", texts({"1", "2"}, {"0", "0"})),
              ThrowsMessage<Error>(HasSubstr("needs answers of class 1; there are 2 of class 0")));
}

TEST(NumberMetrics, NameWhatIsNoNumber) {
  for (const char* bad : {"", "x", "1x", "nan", "inf", "1e999", "1 2"}) {
    EXPECT_THAT(refusal("rmse", texts({"1", bad}, {"1", "1"})),
                ThrowsMessage<Error>(HasSubstr("answer 2 or a reference of it")));
    EXPECT_THROW(figure("mae", texts({"1"}, {bad})), Error);
  }
  EXPECT_THAT(refusal("roc_auc", texts({"0.5"}, {"yes"})),
              ThrowsMessage<Error>(HasSubstr("'yes' is not a class")));
  EXPECT_THAT(refusal("mse", {{.text = "1", .references = {"1", "2"}}}),
              ThrowsMessage<Error>(HasSubstr("2 references")));
}

// The sum of the counts of parts is bit-identical.
TEST(NumberMetrics, AddUp) {
  const auto all = texts({".1", ".7", ".7", ".3", ".9"}, {"0", "1", "1", "1", "0"});
  for (const Metric& metric : metric_table()) {
    if (metric.needs != MetricNeeds::numbers) continue;
    MetricCounts sum;
    for (const ScoredAnswer& answer : all) add_counts(sum, metric.count(answer, {}));
    EXPECT_EQ(metric.figure(sum, {}), measure_answers(metric, all)) << metric.name;
  }
}

std::vector<ScoredAnswer> ranked(const std::vector<std::optional<Rank>>& ranks) {
  std::vector<ScoredAnswer> all;
  for (const auto& rank : ranks) all.push_back({.text = "", .references = {""}, .rank = rank});
  return all;
}

// The ranks of the correct item among scores 5 3 3 3 1, 1 2 2 2 2, 9 1 2 3 4 and 1 1 1 1 1.
TEST(RankingMetrics, AreThoseOfScikitLearnWithTies) {
  const auto ranks = ranked({Rank{1, 2}, Rank{4, 0}, Rank{1, 0}, Rank{0, 4}});
  EXPECT_NEAR(figure("ndcg@1", ranks), 0.05, accuracy);
  EXPECT_NEAR(figure("ndcg@2", ranks), 0.2918564055357253, accuracy);
  EXPECT_NEAR(figure("ndcg@3", ranks), 0.358523072202392, accuracy);
  EXPECT_NEAR(figure("ndcg@10", ranks), 0.5320024554492069, accuracy);
}

// By hand: scikit-learn uses one order of ties, these metrics the mean over all orders.
TEST(RankingMetrics, AreMeansOverTheOrdersOfTies) {
  const auto ranks = ranked({Rank{1, 2}, Rank{4, 0}, Rank{1, 0}, Rank{0, 4}});
  EXPECT_NEAR(figure("hit@1", ranks), (0 + 0 + 0 + 1.0 / 5) / 4, accuracy);
  EXPECT_NEAR(figure("hit@3", ranks), (2.0 / 3 + 0 + 1 + 3.0 / 5) / 4, accuracy);
  EXPECT_EQ(figure("hit@5", ranks), 1);
  EXPECT_EQ(figure("hit@1000000000000", ranks), 1);
  EXPECT_NEAR(figure("mrr", ranks),
              ((1.0 / 2 + 1.0 / 3 + 1.0 / 4) / 3 + 1.0 / 5 + 1.0 / 2 +
               (1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4 + 1.0 / 5) / 5) /
                  4,
              accuracy);
}

TEST(RankingMetrics, NameThoseWithANumber) {
  EXPECT_THAT(numbered_metric_names(), testing::ElementsAre("hit@K", "ndcg@K"));
}

TEST(RankingMetrics, WhatIsNotRankedGainsNothing) {
  const auto ranks = ranked({std::nullopt, Rank{0, 0}});
  for (const char* name : {"hit@10", "ndcg@10", "mrr"}) EXPECT_EQ(figure(name, ranks), 0.5) << name;
}

TEST(RankingMetrics, HaveARowForEachNumber) {
  EXPECT_EQ(find_metric("hit@10"), &metric_named("hit@10"));
  EXPECT_EQ(find_metric("ndcg@7"), find_metric("ndcg@7"));
  EXPECT_EQ(metric_named("ndcg@7").key, "ndcg@7");
  for (const char* name : {"hit@", "hit@0", "hit@-1", "hit@x", "hit@1x", "map@10", "hit", "@10"})
    EXPECT_EQ(find_metric(name), nullptr) << name;
}

// The mean of squares of normal errors has a relative standard error of sqrt(2 / n).
TEST(NumberMetrics, HaveTheIntervalThatTheyVaryBy) {
  std::mt19937_64 random(5);
  std::vector<ScoredAnswer> answers;
  for (int i = 0; i < 400; ++i) {
    // The sum of twelve uniform draws has variance 1.
    double error = -6;
    for (int j = 0; j < 12; ++j) error += static_cast<double>(random() >> 11) * 0x1p-53;
    answers.push_back({.text = fmt::format("{}", error), .references = {"0"}});
  }
  const Metric& metric = metric_named("mse");
  const auto interval = interval_of(metric, answers);
  ASSERT_TRUE(interval.has_value());
  const double figure = measure_answers(metric, answers), wanted = 1.96 * std::sqrt(2.0 / 400);
  EXPECT_NEAR(interval->low, figure - wanted, wanted / 3);
  EXPECT_NEAR(interval->high, figure + wanted, wanted / 3);
  EXPECT_EQ(interval_of(metric, answers)->low, interval->low) << "the same draws each time";
  EXPECT_FALSE(interval_of(metric, {}).has_value());
  const std::vector<ScoredAnswer> one_class(5, {.text = "0.5", .references = {"1"}});
  EXPECT_FALSE(interval_of(metric_named("roc_auc"), one_class).has_value());
}

// Repeats the draws of interval_of() and measures each set by itself.
TEST(NumberMetrics, IntervalsAreThoseOfEachSetByItself) {
  const auto answers = texts({".1", ".7", ".7", ".3", ".9", ".2"}, {"0", "1", "1", "1", "0", "0"});
  for (const Metric& metric : metric_table()) {
    if (!metric.has_interval) continue;
    std::mt19937_64 random(1);
    std::vector<double> figures;
    for (int set = 0; set < 1000; ++set) {
      std::vector<ScoredAnswer> drawn;
      for (size_t i = 0; i < answers.size(); ++i)
        drawn.push_back(answers[random() % answers.size()]);
      try {
        figures.push_back(measure_answers(metric, drawn));
      } catch (const Error&) {
      }
    }
    std::sort(figures.begin(), figures.end());
    const auto interval = interval_of(metric, answers);
    ASSERT_TRUE(interval.has_value()) << metric.name;
    EXPECT_NEAR(interval->low, figures[figures.size() / 40], accuracy) << metric.name;
    EXPECT_NEAR(interval->high, figures[figures.size() - 1 - figures.size() / 40], accuracy)
        << metric.name;
  }
}

// Each answer is read only once, for any number of sets.
TEST(NumberMetrics, IntervalsReadEachAnswerOnce) {
  int64_t read = 0, measured = 0;
  Metric metric = metric_named("mae");
  metric.count = [&](const ScoredAnswer& answer, const MetricOptions& options) {
    ++read;
    return metric_named("mae").count(answer, options);
  };
  metric.figure = [&](const MetricCounts&, const MetricOptions&) { return ++measured, 0.0; };
  const std::vector<ScoredAnswer> answers(30, {.text = "1", .references = {"2"}});
  const auto interval = interval_of(metric, answers);
  EXPECT_EQ(read, 30);
  EXPECT_EQ(measured, 0) << "names are not read again for each set";
  EXPECT_EQ(interval->low, 1);
}

TEST(RankingMetrics, FindTheFirstThatIsRight) {
  const std::vector<std::string> order = {"a", "b", "c", "b"};
  EXPECT_EQ(rank_among(order, {"b"}), (Rank{1, 0}));
  EXPECT_EQ(rank_among(order, {"c", "b"}), (Rank{1, 0}));
  EXPECT_EQ(rank_among(order, {"d"}), std::nullopt);
  EXPECT_EQ(rank_among(order, {}), std::nullopt);
}

std::vector<std::string> labels(const std::string& line) {
  std::vector<std::string> all;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    all.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

nlohmann::json spans(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::vector<ScoredAnswer> answers;
  for (const auto& [answer, right] : lines)
    answers.push_back({.text = answer,
                       .references = {right},
                       .tokens = labels(answer),
                       .reference_tokens = {labels(right)}});
  const Metric& metric = metric_named("span_f1");
  return metric.report(count_answers(metric, answers, {}), {});
}

// Expected values are from seqeval 1.2.2.
TEST(SpanMetrics, AreThoseOfSeqeval) {
  const nlohmann::json same = spans({{"B-PER I-PER O I-LOC", "B-PER I-PER O B-LOC"},
                                     {"B-ORG I-ORG I-ORG O B-LOC", "I-ORG I-ORG B-ORG O I-LOC"},
                                     {"B B O I", "B I O I"}});
  for (const char* name : {"f1", "precision", "recall"})
    EXPECT_NEAR(same[name].get<double>(), 0.5714285714285714, accuracy) << name;
  const nlohmann::json other =
      spans({{"B-PER I-LOC I-LOC", "B-PER I-LOC I-PER"}, {"O B-X I-X I-X", "O B-X I-X B-X"}});
  EXPECT_NEAR(other["f1"].get<double>(), 0.25, accuracy);
  EXPECT_NEAR(other["precision"].get<double>(), 0.3333333333333333, accuracy);
  EXPECT_NEAR(other["recall"].get<double>(), 0.2, accuracy);
}

// Expected values are from seqeval 1.2.2, which reads BIOES; BILOU has other letters.
TEST(SpanMetrics, ReadTheLastAndTheOnlyLabelOfASpan) {
  for (const auto& [last, only] : {std::pair('E', 'S'), std::pair('L', 'U')}) {
    const auto spelled = [last = last, only = only](std::string text) {
      std::replace(text.begin(), text.end(), 'E', last);
      std::replace(text.begin(), text.end(), 'S', only);
      return text;
    };
    // Answered: spans 0-1, 2 and 3-4 of x and 5 of y. Correct: 0-1, 2 and 3-5 of x.
    const nlohmann::json found =
        spans({{spelled("B-x E-x S-x I-x E-x I-y"), spelled("B-x I-x S-x B-x I-x E-x")}});
    EXPECT_NEAR(found["precision"].get<double>(), 0.5, accuracy);
    EXPECT_NEAR(found["recall"].get<double>(), 2.0 / 3, accuracy);
    EXPECT_EQ(spans({{spelled("E-x E-x S-y"), "B-x B-x B-y"}})["f1"], 1);
  }
}

// Expected values are from conlleval 0.2 and seqeval 1.2.2; L and U of BILOU are E and S of BIOES.
TEST(SpanMetrics, ReadTheLabelsOfBioesAndBilou) {
  EXPECT_EQ(spans({{"B-X I-X E-X O S-Y", "B-X I-X E-X O S-Y"}})["f1"], 1);
  EXPECT_EQ(spans({{"B-X I-X L-X O U-Y", "B-X I-X E-X O S-Y"}})["f1"], 1);
  EXPECT_EQ(spans({{"S-X S-X", "B-X E-X"}})["precision"], 0) << "two spans, and one";
  EXPECT_EQ(spans({{"S-X I-X O", "S-X S-X O"}})["f1"], 1) << "S ends a span";
  EXPECT_EQ(spans({{"E-X E-X O", "S-X S-X O"}})["f1"], 1) << "so does E, which may begin one";
  EXPECT_EQ(spans({{"B-X S-X I-X", "S-X S-X S-X"}})["f1"], 1);
  EXPECT_EQ(spans({{"B-X I-X I-X", "B-X I-X E-X"}})["f1"], 1) << "an end that is missing";
  EXPECT_EQ(spans({{"B-X E-Y O", "S-X S-Y O"}})["f1"], 1) << "types differ";
}

TEST(SpanMetrics, TokensThatAreNotReadHaveNoSpan) {
  ScoredAnswer answer{.text = "",
                      .references = {""},
                      .tokens = labels("B-X O"),
                      .reference_tokens = {labels("B-X O O B-X I-X")},
                      .unread = 3};
  const Metric& metric = metric_named("span_f1");
  EXPECT_EQ(metric.report(count_answers(metric, {answer}, {}), {})["recall"], 0.5);
  answer.unread = 2;
  EXPECT_THROW(count_answers(metric, {answer}, {}), Error);
}

TEST(SpanMetrics, NameWhatIsNoLabel) {
  for (const char* bad : {"X-PER", "BPER", "o", "e-PER", "EPER", ""})
    EXPECT_THAT(
        [&] {
          spans({{"O", "O"}, {fmt::format("O {}", bad), "O O"}});
        },
        ThrowsMessage<Error>(HasSubstr("answer 2 or a reference of it")))
        << bad;
  EXPECT_THAT(
      [] {
        spans({{"O O", "O"}});
      },
      ThrowsMessage<Error>(HasSubstr("2 labels, and the reference has 1")));
}

}  // namespace figures_test
}  // namespace attend
