#include "attend/data/metrics.h"

#include <gtest/gtest.h>

namespace attend {
namespace {

using Symbols = std::vector<std::string>;

Symbols letters(const std::string& word) {
  Symbols symbols;
  for (const char letter : word) symbols.emplace_back(1, letter);
  return symbols;
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
  EXPECT_EQ(errors.reference_symbols, 3);
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

}  // namespace
}  // namespace attend
