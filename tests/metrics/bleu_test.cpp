#include "attend/metrics/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "tests/support/files.h"

namespace attend {
namespace bleu_test {

using testing::ElementsAre;
using testing::HasSubstr;

// Expected values are from sacreBLEU 2.6.0, with ten decimals.
constexpr double digits = 5e-11;

const std::vector<std::string> hypotheses = {
    "The dog bit the man.", "It was not unexpected, 1,000 times.", "The man bit him first.", ""};
const std::vector<std::vector<std::string>> references = {
    {"The dog bit the man.", "The dog had bit the man."},
    {"It was not unexpected.", "No one was surprised by 1,000."},
    {"The man had bit the dog.", "The man had bitten the dog."},
    {"Nothing", "Nothing at all"}};

BleuCounts corpus(size_t reference_count, const BleuOptions& options) {
  BleuCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i)
    counts += count_bleu(hypotheses[i],
                         {references[i].begin(),
                          references[i].begin() + static_cast<std::ptrdiff_t>(reference_count)},
                         options);
  return counts;
}

struct Worked {
  std::string tokenise;
  size_t references;
  double score;
  std::vector<int64_t> matches, ngrams;
  int64_t hypothesis_length, reference_length;
  double brevity_penalty;
};

TEST(Bleu, OfACorpusIsThatOfSacreBleu) {
  const std::vector<Worked> all = {
      {"13a", 1, 49.8753944115, {15, 9, 6, 4}, {20, 17, 14, 11}, 20, 19, 1},
      {"none", 1, 45.3528761824, {11, 7, 4, 2}, {16, 13, 10, 7}, 16, 16, 1},
      {"char", 1, 63.6167932695, {47, 40, 35, 31}, {64, 61, 58, 55}, 64, 61, 1},
      {"13a", 2, 48.2146257326, {16, 9, 6, 4}, {20, 17, 14, 11}, 20, 21, 0.9512294245},
      {"none", 2, 40.0237727543, {11, 7, 4, 2}, {16, 13, 10, 7}, 16, 18, 0.8824969026},
      {"char", 2, 66.7349464554, {54, 44, 38, 33}, {64, 61, 58, 55}, 64, 67, 0.9542066660},
  };
  for (const Worked& worked : all) {
    const BleuOptions options{.tokenise = worked.tokenise};
    const BleuCounts counts = corpus(worked.references, options);
    EXPECT_THAT(counts.matches, testing::ElementsAreArray(worked.matches));
    EXPECT_THAT(counts.ngrams, testing::ElementsAreArray(worked.ngrams));
    EXPECT_EQ(counts.hypothesis_length, worked.hypothesis_length);
    EXPECT_EQ(counts.reference_length, worked.reference_length);
    const BleuScore score = bleu(counts, options);
    EXPECT_NEAR(score.score, worked.score, digits) << worked.tokenise;
    EXPECT_NEAR(score.brevity_penalty, worked.brevity_penalty, digits);
    // The paper's formula: BP exp(mean of log p_n).
    double product = 1;
    for (size_t n = 0; n < 4; ++n)
      product *= static_cast<double>(worked.matches[n]) / static_cast<double>(worked.ngrams[n]);
    EXPECT_NEAR(score.score, 100 * worked.brevity_penalty * std::pow(product, 0.25), 1e-7);
  }
}

// Three tokens have no 4-gram, and no 2-gram matches.
TEST(Bleu, OfASentenceIsSmoothedAsAsked) {
  struct Case {
    std::string smooth;
    std::optional<double> value;
    double plain, effective;
  };
  const std::vector<Case> all = {{"exp", {}, 0, 28.4355639043},
                                 {"floor", {}, 0, 12.2525130612},
                                 {"floor", 0.5, 0, 35.8265655287},
                                 {"add-k", {}, 45.7822739868, 45.7822739868},
                                 {"add-k", 0.5, 36.4093023981, 36.4093023981},
                                 {"none", {}, 0, 0}};
  for (const Case& one : all) {
    BleuOptions options{.smooth = one.smooth, .smooth_value = one.value};
    const BleuCounts counts = count_bleu("the small cat", {"the cat is small"}, options);
    EXPECT_NEAR(bleu(counts, options).score, one.plain, digits) << one.smooth;
    options.effective_order = true;
    EXPECT_NEAR(bleu(counts, options).score, one.effective, digits) << one.smooth;
  }
}

TEST(Bleu, SplitsAs13aDoes) {
  const auto tokens = [](const std::string& text) { return bleu_tokens(text, "13a"); };
  EXPECT_THAT(tokens("1,000.5 people, e.g. 3-4 in 2,5 hours - yes!"),
              ElementsAre("1,000.5", "people", ",", "e", ".", "g", ".", "3", "-", "4", "in", "2,5",
                          "hours", "-", "yes", "!"));
  EXPECT_THAT(tokens("a&amp;b &lt;x&gt; <skipped>ok"),
              ElementsAre("a", "&", "b", "<", "x", ">", "ok"));
  EXPECT_THAT(tokens("..., ,,,"), ElementsAre(".", ".", ".", ",", ",", ",", ","));
  EXPECT_THAT(tokens("10-year-old 5- a-b 7--8"),
              ElementsAre("10", "-", "year-old", "5", "-", "a-b", "7", "-", "-8"));
  EXPECT_THAT(tokens("don't—stop…"), ElementsAre("don't—stop…"));
  EXPECT_THAT(tokens("A.B 1.2.3. ,5 5,"),
              ElementsAre("A", ".", "B", "1.2.3", ".", ",", "5", "5", ","));
  EXPECT_THAT(tokens(" \t\u00a0 "), ElementsAre());
}

// Expected tokens are from sacreBLEU 2.6.0.
TEST(Bleu, SplitsAsIntlDoes) {
  const auto tokens = [](const std::string& text) { return bleu_tokens(text, "intl"); };
  EXPECT_THAT(tokens("1,000.5 people, e.g. 3-4 in 2000. "),
              ElementsAre("1,000.5", "people", ",", "e", ".", "g", ".", "3-4", "in", "2000."));
  EXPECT_THAT(tokens("«Ça va?», dit-il: 50 % ½ – a+b=c; $5"),
              ElementsAre("«", "Ça", "va", "?", "»", ",", "dit", "-", "il", ":", "50", "%", "½",
                          "–", "a", "+", "b", "=", "c", ";", "$", "5"));
  EXPECT_THAT(
      tokens("don't—stop… 5€ x→y &amp;"),
      ElementsAre("don", "'", "t", "—", "stop", "…", "5", "€", "x", "→", "y", "&", "amp", ";"));
  EXPECT_THAT(tokens(",5"), ElementsAre(",5"));
  EXPECT_THAT(tokens(" ,5"), ElementsAre(",", "5"));
  EXPECT_THAT(tokens("٣٫٥ №5 Ⅷ,"), ElementsAre("٣٫٥", "№", "5", "Ⅷ,"));
}

TEST(Bleu, SplitsAsZhDoes) {
  const auto tokens = [](const std::string& text) { return bleu_tokens(text, "zh"); };
  EXPECT_THAT(tokens("我有3.5个苹果，你呢？OK, fine."),
              ElementsAre("我", "有", "3.5", "个", "苹", "果", "，", "你", "呢", "？", "OK", ",",
                          "fine", "."));
  EXPECT_THAT(tokens("１２、·don't—stop… 5€ x→y a‐b"),
              ElementsAre("１", "２", "、", "·don't", "—", "stop", "…", "5", "€", "x", "→", "y",
                          "a", "‐", "b"));
  EXPECT_THAT(tokens("ᄒ한국어 カタカナ ﾊﾝ 𠀀字 "),
              ElementsAre("ᄒ한국어", "カタカナ", "ﾊ", "ﾝ", "𠀀", "字"));
  EXPECT_THAT(tokens(" .5 in 2000."), ElementsAre(".5", "in", "2000."));
}

// Escapes are replaced in one pass over the line.
TEST(Bleu, TakesTimeInProportionToALine) {
  std::string line;
  for (int i = 0; i < 200'000; ++i) line += "&amp;";
  EXPECT_EQ(bleu_tokens(line, "13a").size(), 200'000U);
}

TEST(Bleu, CharactersAreCodePoints) {
  EXPECT_THAT(bleu_tokens("né 🙂\u3000z", "char"), ElementsAre("n", "é", "🙂", "z"));
}

TEST(Bleu, LowerCaseIsUnicodes) {
  const BleuOptions options{.tokenise = "char", .lowercase = true};
  const BleuCounts counts = count_bleu("ΟΔΟΣ ΣΑΣ. ÉÑ İ", {"οδος σας. éñ i\u0307"}, options);
  EXPECT_EQ(counts.matches[0], 12);
  EXPECT_EQ(counts.hypothesis_length, 12);
  EXPECT_EQ(counts.reference_length, 12);
}

TEST(Bleu, NothingIsZero) {
  EXPECT_EQ(bleu(BleuCounts(), {}).score, 0);
  EXPECT_EQ(bleu(count_bleu("", {""}, {}), {}).score, 0);
  EXPECT_EQ(bleu(count_bleu("a", {"b"}, {}), {}).score, 0);
}

TEST(Bleu, SignsItsOptions) {
  EXPECT_EQ(bleu_signature({}, 1), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:attend");
  EXPECT_EQ(
      bleu_signature(
          {.tokenise = "char", .smooth = "floor", .lowercase = true, .effective_order = true}, 0),
      "nrefs:var|case:lc|eff:yes|tok:char|smooth:floor[0.10]|version:attend");
  EXPECT_THAT(bleu_signature({.smooth = "add-k", .smooth_value = 0.5}, 1),
              HasSubstr("smooth:add-k[0.50]"));
}

TEST(Bleu, RefusesMisuse) {
  const auto error = [](const BleuOptions& options, const std::vector<std::string>& right) {
    return test::error_of([&] { count_bleu("a", right, options); });
  };
  EXPECT_THAT(error({.tokenise = "14"}, {"a"}),
              HasSubstr("'14'; there are 13a, intl, zh, char, none"));
  EXPECT_THAT(error({.smooth = "no"}, {"a"}), HasSubstr("'no'; there are exp, floor, add-k, none"));
  EXPECT_THAT(error({.smooth_value = 0.0}, {"a"}), HasSubstr("above 0, got 0"));
  EXPECT_THAT(error({}, {}), HasSubstr("at least one reference"));
  EXPECT_THAT(error({}, {"ab\xff"}), HasSubstr("invalid UTF-8 at byte"));
}

}  // namespace bleu_test
}  // namespace attend
