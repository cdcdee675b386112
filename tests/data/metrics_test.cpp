#include "attend/data/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace metrics_test {

using Tokens = std::vector<std::string>;

Tokens letters(const std::string& word) {
  Tokens tokens;
  for (const char letter : word) tokens.emplace_back(1, letter);
  return tokens;
}

TEST(Metrics, CountTheFewestEdits) {
  EXPECT_EQ(edit_distance({}, {}), 0);
  EXPECT_EQ(edit_distance(letters("abc"), {}), 3);
  EXPECT_EQ(edit_distance({}, letters("abc")), 3);
  EXPECT_EQ(edit_distance(letters("kitten"), letters("sitting")), 3);
  EXPECT_EQ(edit_distance(letters("abcd"), letters("bcda")), 2);
}

TEST(Metrics, TakeTheNearestReference) {
  ErrorCounts errors;
  errors.add(letters("abc"), {letters("xyzw"), letters("abd")});
  EXPECT_EQ(errors.edits, 1);
  EXPECT_EQ(errors.reference_tokens, 3);
  EXPECT_EQ(errors.wrong, 1);
  errors.add(letters("ab"), {letters("b"), letters("ab")});
  EXPECT_EQ(errors.wrong, 1);
  EXPECT_DOUBLE_EQ(errors.token_error_rate(), 1.0 / 5);
  EXPECT_DOUBLE_EQ(errors.sequence_error_rate(), 0.5);
}

TEST(Metrics, OfNothingAreZero) {
  EXPECT_EQ(ErrorCounts{}.token_error_rate(), 0);
  EXPECT_EQ(ErrorCounts{}.sequence_error_rate(), 0);
}

// What is answered where nothing is right is wrong.
TEST(Metrics, OfEmptyReferencesAreTheEdits) {
  ErrorCounts errors;
  errors.add(letters("ab"), {{}});
  errors.add({}, {{}});
  errors.add(letters("c"), {{}});
  EXPECT_EQ(errors.token_error_rate(), 3);
  EXPECT_DOUBLE_EQ(errors.sequence_error_rate(), 2.0 / 3);
}

// Of 3 "a", 2 became "a"; of 2 "b", 1 became "a"; "c" was answered once and never right.
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
