#include "attend/metrics/chrf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/files.h"

namespace attend {
namespace chrf_test {

using testing::HasSubstr;

// Expected values are from sacreBLEU 2.6.0, with ten decimals.
constexpr double digits = 5e-11;

double corpus(const ChrfOptions& options, bool second_reference) {
  const std::vector<std::string> hypotheses = {
      "The dog bit the man.", "It was not unexpected, 1,000 times.", "The man bit him first.", ""};
  const std::vector<std::vector<std::string>> references = {
      {"The dog bit the man.", "The dog had bit the man."},
      {"It was not unexpected.", "No one was surprised by 1,000."},
      {"The man had bit the dog.", "The man had bitten the dog."},
      {"Nothing", "Nothing at all"}};
  ChrfCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<std::string> right = {references[i][0]};
    if (second_reference) right.push_back(references[i][1]);
    counts += count_chrf(hypotheses[i], right, options);
  }
  return chrf(counts, options);
}

TEST(Chrf, OfACorpusIsThatOfSacreBleu) {
  EXPECT_NEAR(corpus({}, false), 65.2053948223, digits);
  EXPECT_NEAR(corpus({.word_order = 2}, false), 65.9795993417, digits);
  EXPECT_NEAR(corpus({.word_order = 2, .lowercase = true}, false), 65.9795993417, digits);
  EXPECT_NEAR(corpus({.white_space = true}, false), 69.2032509061, digits);
  EXPECT_NEAR(corpus({.character_order = 2, .beta = 1}, false), 71.5000532117, digits);
  // The first reference is the best one for every hypothesis.
  EXPECT_NEAR(corpus({}, true), 65.2053948223, digits);
}

// "abc" with "abd": 2 of 3 letters, 1 of 2 pairs, 0 of 1 triple, no longer n-grams. P and R are
// their mean.
TEST(Chrf, IsTheMeanOverTheOrdersThatBothHave) {
  EXPECT_NEAR(chrf(count_chrf("abc", {"abd"}, {}), {}), 100 * (2.0 / 3 + 1.0 / 2) / 3, 1e-12);
  // P = (1 + 1) / 2, R = (2 / 3 + 1 / 2) / 2 and F_2 = 5 P R / (4 P + R).
  const double recall = (2.0 / 3 + 1.0 / 2) / 2;
  EXPECT_NEAR(chrf(count_chrf("ab", {"abc"}, {}), {}), 100 * 5 * recall / (4 + recall), 1e-12);
}

TEST(Chrf, TakesTheReferenceThatScoresBest) {
  const double near = chrf(count_chrf("abc", {"abd"}, {}), {});
  EXPECT_EQ(chrf(count_chrf("abc", {"xyz", "abd", "azz"}, {}), {}), near);
}

// chrF++ removes one mark from a word: the last one, otherwise the first.
TEST(Chrf, TakesMarksOffWords) {
  const ChrfOptions words{.character_order = 1, .word_order = 1};
  const auto unigrams = [&](const std::string& text, const std::string& reference) {
    return count_chrf(text, {reference}, words).orders[1];
  };
  EXPECT_EQ(unigrams("(hi) «no» .", ") hi «no» .").matches, 3);
  EXPECT_EQ(unigrams("(hi", "( hi").matches, 2);
  EXPECT_EQ(unigrams("(hi)", "hi").matches, 0);
}

TEST(Chrf, NothingIsZero) {
  EXPECT_EQ(chrf(ChrfCounts(), {}), 0);
  EXPECT_EQ(chrf(count_chrf("", {"a"}, {}), {}), 0);
  EXPECT_EQ(chrf(count_chrf("a", {""}, {}), {}), 0);
}

TEST(Chrf, SignsItsOptions) {
  EXPECT_EQ(chrf_name({}), "chrF2");
  EXPECT_EQ(chrf_name({.word_order = 2}), "chrF2++");
  EXPECT_EQ(chrf_signature({.word_order = 2}, 1),
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:attend");
  EXPECT_EQ(chrf_signature({.lowercase = true, .white_space = true}, 3),
            "nrefs:3|case:lc|eff:yes|nc:6|nw:0|space:yes|version:attend");
}

TEST(Chrf, RefusesMisuse) {
  const auto error = [](const ChrfOptions& options, const std::vector<std::string>& right) {
    return test::error_of([&] { count_chrf("a", right, options); });
  };
  EXPECT_THAT(error({.character_order = 0}, {"a"}), HasSubstr("character_order must be 1 to 100"));
  EXPECT_THAT(error({.word_order = -1}, {"a"}), HasSubstr("word_order must be 0 to 100, got -1"));
  EXPECT_THAT(error({.beta = 0}, {"a"}), HasSubstr("beta must be 1"));
  EXPECT_THAT(error({}, {}), HasSubstr("at least one reference"));
}

}  // namespace chrf_test
}  // namespace attend
