#include "attend/explain/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/explain/answer_page.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/rank_correlation.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace evidence_test {

using at::Tensor;
using test::small_model;
using test::small_models;
using test::SmallModel;
using testing::ElementsAre;
using testing::HasSubstr;

double tau(const std::vector<double>& a, const std::vector<double>& b) { return kendall_tau(a, b); }

TEST(RankCorrelation, CountsPairsInAndOutOfOrder) {
  EXPECT_EQ(tau({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_EQ(tau({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // 4 of 6 pairs agree.
  EXPECT_NEAR(tau({1, 2, 3, 4}, {1, 2, 4, 3}), 4.0 / 6, 1e-12);
  // Of 6 pairs one is tied in a and one in b; of the other 4 three agree and one does not.
  EXPECT_NEAR(tau({1, 1, 2, 3}, {1, 2, 2, 0}), (1 - 3) / 5.0, 1e-12);
  EXPECT_EQ(tau({1, 1}, {1, 2}), 0);
  EXPECT_EQ(tau({}, {}), 0);
  EXPECT_THAT(test::error_of([] { tau({1}, {1, 2}); }), HasSubstr("1 and 2 values"));
}

TEST(WeightTests, ChangeTheAnswerOnlyWhereItIsReadOffWeights) {
  for (const SmallModel& small : small_models()) {
    SCOPED_TRACE(small.name);
    const Subject subject = small.subject();
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    if (!why_not(find_method("attention"), subject, trace).empty()) {
      EXPECT_NE(test::error_of([&] { test_weights(subject); }), "");
      continue;
    }
    const WeightTests tests = test_weights(subject);
    EXPECT_GT(tests.permuted, 0);
    EXPECT_LT(tests.permuted, 1);
    EXPECT_GE(tests.flips_by_largest, 0);
    EXPECT_LE(tests.flips_by_largest, 1);
    EXPECT_GE(tests.adversarial, 0);
    EXPECT_LE(tests.adversarial, std::log(2) + 1e-9);
    EXPECT_TRUE(std::isfinite(tests.uniform_loss));
    EXPECT_NE(tests.uniform_loss, 0);
    const WeightTests again = test_weights(subject);
    EXPECT_EQ(tests.permuted, again.permuted) << "the same seed draws the same";
    EXPECT_EQ(tests.adversarial, again.adversarial);
  }
}

// Whose values are all alike, the weights cannot matter, and every distribution is an adversary.
TEST(WeightTests, SayThatWeightsDoNotMatterWhereValuesAreAlike) {
  SmallModel small = small_model("classifier_fixed");
  small.source = "a a a a a";
  const Subject subject = small.subject();
  const WeightTests tests = test_weights(subject);
  EXPECT_NEAR(tests.permuted, 0, 1e-12);
  EXPECT_NEAR(tests.uniform_loss, 0, 1e-12);
  EXPECT_EQ(tests.flips_by_largest, 0);
  EXPECT_GT(tests.adversarial, 0.3);
}

// A bag of words: what the answer loses without each token is known.
TEST(Evidence, IsThatOfReadingTheTokensAgain) {
  const SmallModel small = small_model("classifier_fixed");
  const Subject subject = small.subject();
  EvidenceTester tester(subject);
  const MethodRow& method = find_method("occlusion");
  const Tensor scores = method_scores(method, subject);
  const auto figures = tester.measure(
      method, scores, {&find_figure("comprehensiveness"), &find_figure("sufficiency")});
  ASSERT_EQ(figures.size(), 2U);
  const auto probability = [&](const std::string& source) {
    SmallModel other = small;
    other.source = source;
    const Subject read = other.subject();
    return trace_network(read.network(), read.batch).log_probabilities[0][0].exp().item<double>();
  };
  const Tensor order = scores[0].argsort(0, true);
  const std::vector<std::string> tokens = {"a", "b", "c", "d", "e"};
  // Of 5 tokens 1, 5, 10 and 20 % are one, 50 % are three (2.5 is rounded up).
  std::vector<double> without, with;
  for (const int64_t count : {1, 1, 1, 1, 3}) {
    std::string left, best;
    std::vector<bool> taken(5);
    for (int64_t i = 0; i < count; ++i) taken[static_cast<size_t>(order[i].item<int64_t>())] = true;
    for (size_t i = 0; i < 5; ++i) (taken[i] ? best : left) += tokens[i] + ' ';
    without.push_back(probability(left));
    with.push_back(probability(best));
  }
  const auto lost = [&](const std::vector<double>& left) {
    double sum = 0;
    for (const double one : left) sum += probability("a b c d e") - one;
    return sum / 5;
  };
  EXPECT_NEAR(figures[0].figure.value, lost(without), 1e-9);
  EXPECT_NEAR(figures[1].figure.value, lost(with), 1e-9);
}

TEST(Evidence, HasAFigureForEveryRowThatApplies) {
  for (const char* name : {"seq2seq", "classifier_class", "lm"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    EvidenceTester tester(subject, {.permutations = 5, .rows = 2, .steps = 3});
    const auto names = [&](const char* method) {
      std::vector<std::string> names;
      const MethodRow& row = find_method(method);
      for (const MeasuredFigure& one : tester.measure(row, method_scores(row, subject))) {
        names.emplace_back(one.row->name);
        EXPECT_TRUE(std::isfinite(one.figure.value));
      }
      return names;
    };
    EXPECT_EQ(names("attention").size(), figure_table().size());
    EXPECT_THAT(names("occlusion"),
                ElementsAre("comprehensiveness", "sufficiency", "flips_by_token", "tau_gradient",
                            "tau_random_weights"));
  }
  EXPECT_THAT(test::error_of([] { find_figure("tau_gradients"); }),
              HasSubstr("did you mean tau_gradient?"));
}

TEST(Evidence, ACardSaysWhatFailed) {
  const std::vector<EvidenceFigure> card = evidence_card(
      {{&find_figure("comprehensiveness"), {0.1, 0.2}}, {&find_figure("tau_gradient"), {0.5}}});
  ASSERT_EQ(card.size(), 2U);
  EXPECT_FALSE(card[0].passed);
  EXPECT_EQ(card[0].bar, "above that of a random order, 0.200");
  EXPECT_TRUE(card[1].passed);
  EXPECT_EQ(card[1].bar, "");
}

TEST(LayerMaps, NameTheirTokens) {
  const auto tokens = [](const char* name, size_t map) {
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const auto maps = layer_maps(subject, trace_network(subject.network(), subject.batch));
    EXPECT_EQ(std::ssize(maps[map].rows), maps[map].weights.size(1));
    EXPECT_EQ(std::ssize(maps[map].columns), maps[map].weights.size(2));
    return std::pair(maps[map].rows, maps[map].columns);
  };
  EXPECT_THAT(tokens("lm", 1).first, ElementsAre("<s>", "a", "b", "c", "d", "e", "x", "y", "z"));
  EXPECT_THAT(tokens("classifier_class", 0).second,
              ElementsAre("<class>", "a", "b", "c", "d", "e"));
  EXPECT_THAT(tokens("transformer", 2).first, ElementsAre("<s>", "x", "y", "z"));
  EXPECT_THAT(tokens("transformer", 3).first, ElementsAre("x", "y", "z", "</s>"));
  EXPECT_THAT(tokens("classifier_fixed", 0).first, ElementsAre("<answer>"));
}

TEST(LayerMaps, PiecesBecomeWords) {
  const WordGroups groups = group_words({"econ@@", "omic", "a", "b@@", "c@@", "d"});
  EXPECT_THAT(groups.words, ElementsAre("economic", "a", "bcd"));
  const Tensor map = at::arange(12, at::kDouble).view({2, 6});
  const WordGroups rows = group_words({"x@@", "y"});
  const Tensor merged = merge_words(map, rows, groups);
  EXPECT_TRUE(merged.equal(at::tensor({7.0, 5.0, 21.0}, at::kDouble).view({1, 3}))) << merged;
}

TEST(LayerMaps, HardAlignmentsAreThoseOfTheLargestScores) {
  EXPECT_EQ(pharaoh(at::tensor({0.1, 0.9, 0.8, 0.2}).view({2, 2})), "1-0 0-1");
}

TEST(LayerMaps, APageHoldsMethodsAndLayers) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const MethodRow& row = find_method("attention");
  const Tensor scores = method_scores(row, subject).slice(0, 0, 3);
  const auto maps = layer_maps(subject, trace_network(subject.network(), subject.batch));
  const ExplanationPage page = answer_page(subject, {{{&row, scores}}, "a note"}, maps);
  EXPECT_EQ(page.methods.size(), 1U);
  EXPECT_EQ(page.maps.size(), 6U);
  EXPECT_EQ(page.tokens[page.maps[3].columns].tokens.size(), 5U);
  std::ostringstream out;
  write_page(out, page);
  EXPECT_THAT(out.str(), HasSubstr("a note"));
}

}  // namespace evidence_test
}  // namespace attend
