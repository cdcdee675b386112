#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "attend/base/edit_distance.h"
#include "attend/base/error.h"
#include "attend/metrics/label_counts.h"
#include "attend/metrics/length_ranges.h"
#include "attend/metrics/likelihood.h"
#include "attend/metrics/metric.h"

namespace attend {
namespace metrics_test {

using Tokens = std::vector<std::string>;

Tokens letters(const std::string& word) {
  Tokens tokens;
  for (const char letter : word) tokens.emplace_back(1, letter);
  return tokens;
}

TEST(Metrics, CountTheFewestEdits) {
  EXPECT_EQ(edit_distance(Tokens{}, {}), 0);
  EXPECT_EQ(edit_distance(letters("abc"), {}), 3);
  EXPECT_EQ(edit_distance({}, letters("abc")), 3);
  EXPECT_EQ(edit_distance(letters("kitten"), letters("sitting")), 3);
  EXPECT_EQ(edit_distance(letters("abcd"), letters("bcda")), 2);
  EXPECT_EQ(edit_distance(letters("abcd"), letters("badc")), 3);
  EXPECT_EQ(edit_distance(letters("abcd"), letters("badc"), /*swaps=*/true), 2);
  EXPECT_EQ(edit_distance(letters("ca"), letters("abc"), /*swaps=*/true), 3) << "each once";
}

ScoredAnswer scored(const std::string& answer, const std::vector<std::string>& references) {
  ScoredAnswer scored{.text = answer, .references = references, .tokens = letters(answer)};
  for (const std::string& reference : references)
    scored.reference_tokens.push_back(letters(reference));
  return scored;
}

double figure(const std::string& name, const std::vector<ScoredAnswer>& answers) {
  return measure_answers(metric_named(name), answers);
}

TEST(Metrics, TakeTheNearestReference) {
  const std::vector<ScoredAnswer> answers = {scored("abc", {"xyzw", "abd"}),
                                             scored("ab", {"b", "ab"})};
  const MetricCounts counts = count_answers(metric_named("token_error"), answers, {});
  EXPECT_EQ(counts.at("edits"), 1);
  EXPECT_EQ(counts.at("tokens"), 5);
  EXPECT_DOUBLE_EQ(figure("token_error", answers), 1.0 / 5);
  EXPECT_DOUBLE_EQ(figure("sequence_error", answers), 0.5);
  EXPECT_DOUBLE_EQ(figure("accuracy", answers), 0.5);
}

TEST(Metrics, OfNothingAreZero) {
  for (const Metric& metric : metric_table()) {
    if (!metric.of_texts() && metric.needs != MetricNeeds::rank) continue;
    EXPECT_EQ(measure_answers(metric, {}), metric.name == "accuracy" ? 1 : 0) << metric.name;
  }
}

ScoredAnswer labelled(const Tokens& answer, const std::vector<Tokens>& references) {
  ScoredAnswer scored;
  scored.tokens = answer;
  scored.reference_tokens = references;
  for (const Tokens& each : references) scored.references.push_back(each.empty() ? "" : each[0]);
  return scored;
}

// As scikit-learn counts them, with zero_division=0.
TEST(Metrics, OfLabelSetsEqualScikitLearns) {
  const std::vector<ScoredAnswer> answers = {
      labelled({"a", "b"}, {{"b", "a"}}), labelled({"a"}, {{"a", "c"}}),
      labelled({"b", "d"}, {{"b"}}), labelled({}, {{}}), labelled({}, {{"a"}})};
  EXPECT_DOUBLE_EQ(figure("micro_f1", answers), 2 * 4.0 / (5 + 6));
  EXPECT_DOUBLE_EQ(figure("macro_f1", answers), (2 * 2.0 / (2 + 3) + 1) / 4);
  EXPECT_DOUBLE_EQ(figure("exact_match", answers), 2.0 / 5);
  const Metric& macro = metric_named("macro_f1");
  const auto report = macro.report(count_answers(macro, answers, {}), {});
  EXPECT_EQ(report["labels"]["d"]["precision"], 0);
  EXPECT_DOUBLE_EQ(report["labels"]["a"]["recall"].get<double>(), 2.0 / 3);
  EXPECT_EQ(figure("exact_match", {labelled({"a"}, {{"b"}, {"a"}})}), 1) << "any reference";
}

// With an empty reference only an empty answer is correct.
TEST(Metrics, OfEmptyReferencesAreTheEdits) {
  const std::vector<ScoredAnswer> answers = {scored("ab", {""}), scored("", {""}),
                                             scored("c", {""})};
  EXPECT_EQ(figure("token_error", answers), 3);
  EXPECT_DOUBLE_EQ(figure("sequence_error", answers), 2.0 / 3);
}

// Part of the answers is measured like all, and counts of parts add up.
TEST(Metrics, OfAnswersAddUpOverLengths) {
  std::vector<ScoredAnswer> answers = {scored("the cat sat down", {"the cat sat down", "a cat"}),
                                       scored("a dog ran", {"the dog ran"}), scored("no", {"yes"})};
  for (size_t i = 0; i < answers.size(); ++i) answers[i].source_length = static_cast<int64_t>(i);
  for (const Metric& metric : metric_table()) {
    if (!metric.of_texts() || metric.name == "span_f1") continue;
    EXPECT_EQ(measure_answers(metric, answers, {}, {1, 1}), measure_answers(metric, {answers[1]}))
        << metric.name;
    MetricCounts sum = count_answers(metric, answers, {}, {0, 0});
    add_counts(sum, count_answers(metric, answers, {}, {1, 2}));
    EXPECT_EQ(sum, count_answers(metric, answers, {})) << metric.name;
    EXPECT_EQ(metric.figure(sum, {}), measure_answers(metric, answers)) << metric.name;
  }
}

TEST(Metrics, OfTextsNameTheAnswerThatIsNone) {
  const std::vector<ScoredAnswer> answers = {scored("a", {"a"}), scored("\xff", {"a"})};
  for (const Metric& metric : metric_table()) {
    if (metric.needs != MetricNeeds::texts) continue;
    EXPECT_THAT([&] { count_answers(metric, answers, {}); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("answer 2 or a reference")))
        << metric.name;
  }
}

TEST(Metrics, AreShownWithTheirUnits) {
  EXPECT_EQ(metric_named("token_error").shown(0.0205), "2.05 %");
  EXPECT_EQ(metric_named("bleu").shown(34.567), "34.57");
  EXPECT_EQ(metric_named("loss").shown(0.25), "0.2500");
  EXPECT_EQ(metric_named("sequence_error").report_text(0.0205), "sequence error rate    2.05 %\n");
  EXPECT_EQ(metric_named("loss").report_text(0.25, "label"),
            "loss                 0.2500 nats per label\n");
}

TEST(Metrics, SignaturesTellHowManyReferencesThereAre) {
  const Metric& bleu = metric_named("bleu");
  const auto signature = [&](const std::vector<ScoredAnswer>& answers) {
    return bleu.report(count_answers(bleu, answers, {}), {})["signature"].get<std::string>();
  };
  const ScoredAnswer one = scored("a", {"a"}), two = scored("a", {"a", "b"});
  EXPECT_THAT(signature({one, one}), testing::StartsWith("nrefs:1|"));
  EXPECT_THAT(signature({two, two}), testing::StartsWith("nrefs:2|"));
  EXPECT_THAT(signature({one, two}), testing::StartsWith("nrefs:var|"));
}

TEST(Metrics, AreFoundByTheirNames) {
  EXPECT_EQ(find_metric("blue"), nullptr);
  EXPECT_THAT([] { metric_named("blue"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("did you mean bleu?")));
  EXPECT_THAT([] { register_metric({.name = "bleu", .key = "bleu", .title = "BLEU"}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("exists already")));
  for (const Metric& metric : metric_table()) {
    EXPECT_NE(metric.of_answers(), static_cast<bool>(metric.of_likelihood)) << metric.name;
    EXPECT_EQ(find_metric(metric.name), &metric);
  }
}

TEST(LengthRanges, TakeTheRareLengthsIntoTheEnds) {
  EXPECT_TRUE(length_ranges({}).empty());
  std::vector<int64_t> lengths = {1, 90};
  for (int64_t i = 0; i < 98; ++i) lengths.push_back(10 + i % 8);
  const std::vector<LengthRange> ranges = length_ranges(lengths);
  ASSERT_EQ(ranges.size(), 5U);
  EXPECT_EQ(ranges.front().first, 1);
  EXPECT_EQ(ranges.back().last, 90);
  for (size_t i = 1; i < ranges.size(); ++i) EXPECT_EQ(ranges[i].first, ranges[i - 1].last + 1);
}

// Two of three "a" became "a", one of two "b" became "a"; "c" was answered once and never correct.
TEST(Metrics, CountLabels) {
  LabelCounts counts;
  counts.add("a", {"a"});
  counts.add("a", {"b", "a"});
  counts.add("c", {"a", "b"});
  counts.add("b", {"b"});
  counts.add("a", {"b"});
  EXPECT_DOUBLE_EQ(counts.accuracy(), 3.0 / 5);
  const auto scores = counts.scores();
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_DOUBLE_EQ(scores.at("a").precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.at("a").recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.at("a").f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.at("b").precision, 1);
  EXPECT_DOUBLE_EQ(scores.at("b").recall, 1.0 / 2);
  EXPECT_DOUBLE_EQ(scores.at("b").f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.at("c").f1, 0);
  EXPECT_DOUBLE_EQ(counts.macro().precision, (2.0 / 3 + 1 + 0) / 3);
  EXPECT_DOUBLE_EQ(counts.macro().recall, (2.0 / 3 + 1.0 / 2 + 0) / 3);
  EXPECT_DOUBLE_EQ(counts.macro().f1, (2.0 / 3 + 2.0 / 3 + 0) / 3);
  EXPECT_THROW(counts.add("a", {}), Error);
  EXPECT_EQ(LabelCounts{}.accuracy(), 0);
  EXPECT_EQ(LabelCounts{}.macro().f1, 0);
}

// Expected values are from scikit-learn 1.9: accuracy_score and f1_score (macro) of all tokens.
TEST(Metrics, OfALabelPerTokenCompareTokens) {
  const MetricOptions by_token{.label_per_token = true};
  ScoredAnswer first = scored("abb", {"aab"}), second = scored("ab", {"abba"});
  second.unread = 2;
  const std::vector<ScoredAnswer> answers = {first, second};
  EXPECT_DOUBLE_EQ(measure_answers(metric_named("accuracy"), answers, by_token), 4.0 / 7);
  EXPECT_EQ(measure_answers(metric_named("accuracy"), answers), 0)
      << "no answer is right as a whole";
  // a: 2 of 2 answers, 2 of 4 tokens; b: 2 of 3 answers, 2 of 3 tokens.
  EXPECT_DOUBLE_EQ(measure_answers(metric_named("f1"), answers, by_token), (2.0 / 3 + 2.0 / 3) / 2);
  const Metric& f1 = metric_named("f1");
  const auto details = f1.report(count_answers(f1, answers, by_token), by_token);
  EXPECT_EQ(details["labels"].size(), 2U);
  EXPECT_DOUBLE_EQ(details["labels"]["a"]["recall"], 0.5);
  EXPECT_DOUBLE_EQ(details["micro_f1"], 4.0 / 7);
  const std::vector<ScoredAnswer> empty = {{.text = "", .references = {"a"}}};
  EXPECT_THAT(f1.report_text(f1.report(count_answers(f1, empty, {}), {})),
              testing::HasSubstr("label (none): F1 0.00 %"));
}

// Two tokens of 1 bit each over 4 bytes.
TEST(Metrics, MeasureLikelihood) {
  const Likelihood likelihood{.nats = 2 * std::log(2.0), .tokens = 2, .bytes = 4};
  EXPECT_DOUBLE_EQ(likelihood.perplexity(), 2);
  EXPECT_DOUBLE_EQ(likelihood.bits_per_byte(), 0.5);
  EXPECT_EQ(Likelihood{}.perplexity(), 1);
  EXPECT_EQ(Likelihood{}.bits_per_byte(), 0);
  const Likelihood half{.nats = 2 * std::log(2.0) + 9,
                        .tokens = 5,
                        .bytes = 10,
                        .unknown_nats = 9,
                        .unknown = 3,
                        .unknown_bytes = 6};
  EXPECT_DOUBLE_EQ(half.known().perplexity(), 2);
  EXPECT_DOUBLE_EQ(half.bits_per_byte(), 0.5);
  EXPECT_GT(half.perplexity(), 2);
}

}  // namespace metrics_test
}  // namespace attend
