#include "attend/explain/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "attend/base/error.h"
#include "attend/explain/answer_page.h"
#include "attend/explain/explanation_json.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/rank_correlation.h"
#include "attend/pictures/alignment.h"
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

double tau(const std::vector<double>& a, const std::vector<double>& b) {
  return kendall_tau(a, b).value_or(7);
}

TEST(RankCorrelation, CountsPairsInAndOutOfOrder) {
  EXPECT_EQ(tau({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_EQ(tau({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // 4 of 6 pairs agree.
  EXPECT_NEAR(tau({1, 2, 3, 4}, {1, 2, 4, 3}), 4.0 / 6, 1e-12);
  // One of 6 pairs is tied in a and one in b. Three of the others agree and one does not.
  EXPECT_NEAR(tau({1, 1, 2, 3}, {1, 2, 2, 0}), (1 - 3) / 5.0, 1e-12);
  EXPECT_FALSE(kendall_tau(std::vector<double>{1, 1}, std::vector<double>{1, 2}).has_value());
  EXPECT_FALSE(kendall_tau({}, {}).has_value());
  EXPECT_FALSE(kendall_tau(std::vector<double>{1, NAN}, std::vector<double>{1, 2}).has_value());
  EXPECT_THAT(test::error_of([] { tau({1}, {1, 2}); }), HasSubstr("1 and 2 values"));
}

// Compares every pair.
double tau_by_pairs(const std::vector<double>& a, const std::vector<double>& b) {
  double agreement = 0, pairs_a = 0, pairs_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int order_a = (a[i] > a[j]) - (a[i] < a[j]), order_b = (b[i] > b[j]) - (b[i] < b[j]);
      agreement += order_a * order_b;
      pairs_a += order_a * order_a;
      pairs_b += order_b * order_b;
    }
  }
  return pairs_a * pairs_b > 0 ? agreement / std::sqrt(pairs_a * pairs_b) : 7;
}

TEST(RankCorrelation, IsThatOfEveryPair) {
  for (const int64_t count : {1, 2, 3, 59, 111}) {
    for (const int64_t values : {1, 2, 10, 1000}) {
      const Tensor drawn =
          at::remainder(at::arange(2 * count) * 7919 + count * values, 104729) % values;
      const auto ranking = [&](int64_t first) {
        const Tensor part = drawn.slice(0, first, first + count).to(at::kDouble).contiguous();
        return std::vector<double>(part.data_ptr<double>(), part.data_ptr<double>() + count);
      };
      const std::vector<double> a = ranking(0), b = ranking(count);
      EXPECT_DOUBLE_EQ(tau(a, b), tau_by_pairs(a, b)) << count << " of " << values;
    }
  }
}

TEST(RankCorrelation, TakesRankingsOfManyItems) {
  std::vector<double> up(2'000'000);
  std::iota(up.begin(), up.end(), 0);
  EXPECT_EQ(tau(up, {up.rbegin(), up.rend()}), -1);
}

TEST(WeightTests, ChangeTheAnswerOnlyWhereItIsReadOffWeights) {
  for (const SmallModel& small : small_models()) {
    SCOPED_TRACE(small.name);
    const Subject subject = small.subject();
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    if (!small.model.answer_kind().has_probabilities() ||
        !refusal_reason(find_method("attention"), subject, trace).empty()) {
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

// With equal values the weights do not matter, and every distribution is adversarial.
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

// For a bag of words the loss without each token can be computed.
TEST(Evidence, IsThatOfReadingTheTokensAgain) {
  const SmallModel small = small_model("classifier_fixed");
  const Subject subject = small.subject();
  const Explanation explanation(subject);
  EvidenceTester tester(explanation);
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
  // 1, 5, 10 and 20 % of 5 tokens are one token, 50 % are three (2.5 is rounded up).
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

// The expected value: the mean over every set of the same size, each run by itself.
TEST(Evidence, ARandomOrderIsTheMeanOfAllOrders) {
  const SmallModel small = small_model("classifier_class");
  const Subject subject = small.subject();
  const Explanation explanation(subject);
  EvidenceTester tester(explanation);
  const MethodRow& method = find_method("occlusion");
  const auto figures =
      tester.measure(method, method_scores(method, subject),
                     {&find_figure("comprehensiveness"), &find_figure("sufficiency")});
  const double before =
      trace_network(subject.network(), subject.batch).log_probabilities[0][0].exp().item<double>();
  std::map<int64_t, std::pair<double, double>> sums;  // by the number of kept tokens
  std::map<int64_t, double> sets;
  for (unsigned which = 1; which < 31; ++which) {  // subsets of five tokens
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < 5; ++i)
      if ((which >> i) % 2 == 1) kept.push_back(i);
    const double left = answers_of(subject, {kept}).probabilities[0][0].item<double>();
    sums[std::ssize(kept)].first += before - left;
    ++sets[std::ssize(kept)];
  }
  const auto mean = [&](int64_t kept) { return sums[kept].first / sets[kept]; };
  // 1, 5, 10 and 20 % of five tokens are one token, 50 % are three.
  EXPECT_NEAR(figures[0].figure.other, (4 * mean(4) + mean(2)) / 5, 1e-9);
  EXPECT_NEAR(figures[1].figure.other, (4 * mean(1) + mean(3)) / 5, 1e-9);
}

// If there are many sets, some are drawn: their mean is near the mean of all.
TEST(Evidence, ManyOrdersAreNearTheMeanOfAll) {
  SmallModel small = small_model("classifier_class");
  small.source = "a b c d e e d c b a";
  const Subject subject = small.subject();
  const auto other = [&](int64_t orders, uint64_t seed) {
    const Explanation explanation(subject);
    EvidenceTester tester(explanation, {.orders = orders, .seed = seed});
    const MethodRow& method = find_method("gradient");
    return tester
        .measure(method, method_scores(method, subject), {&find_figure("comprehensiveness")})[0]
        .figure.other;
  };
  const double exact = other(1000, 1);  // 252 sets of five tokens
  EXPECT_EQ(exact, other(1000, 2));
  double one_off = 0, many_off = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    one_off += std::pow(other(1, seed) - exact, 2);
    many_off += std::pow(other(50, seed) - exact, 2);
  }
  EXPECT_GT(one_off, 0);
  // Orders are independent: the variance of a mean of 50 is a fiftieth, estimated from 20 draws.
  EXPECT_LT(many_off, one_off / 10);
}

// Signed scores are compared with signed reference scores.
TEST(Evidence, SignedScoresAreComparedWithTheirSigns) {
  const SmallModel small("sum", "classifier", {"model.depth=8", "model.pooling=sum"});
  const Subject subject = small.subject();
  const Explanation explanation(subject);
  EvidenceTester tester(explanation, {.permutations = 5, .steps = 3, .networks = 1});
  const Tensor occluded = method_scores(find_method("occlusion"), subject)[0];
  ASSERT_LT(occluded.min().item<double>(), 0);
  ASSERT_GT(occluded.max().item<double>(), 0);
  // Without layers each token adds to the logits: all these methods have the same order.
  for (const char* name : {"gradient_x_input", "integrated_gradients", "occlusion"}) {
    SCOPED_TRACE(name);
    const MethodRow& row = find_method(name);
    const Tensor scores = method_scores(row, subject);
    ASSERT_TRUE(scores[0].argsort().equal(occluded.argsort()));
    for (const MeasuredFigure& one :
         tester.measure(row, scores, {&find_figure("tau_gradient"), &find_figure("tau_occlusion")}))
      EXPECT_EQ(one.figure.value, 1) << one.row->name;
  }
  const MethodRow& lengths = find_method("held_gradient");
  const auto figures =
      tester.measure(lengths, method_scores(lengths, subject), {&find_figure("tau_occlusion")});
  EXPECT_GT(figures[0].figure.value, 0.3) << "magnitudes are compared with magnitudes";
}

// If no token changes an almost certain answer, a map cannot be better than a random one.
TEST(Evidence, ATieAtZeroIsNotComputed) {
  const SmallModel small = small_model("classifier_fixed");
  const Subject subject = small.subject();
  {
    const at::NoGradGuard not_recorded;
    small.model.network->named_parameters()["output.bias"][0] += 30;
  }
  const Explanation explanation(subject);
  EvidenceTester tester(explanation, {.permutations = 5, .steps = 3, .networks = 1});
  const MethodRow& method = find_method("attention");
  const auto card = evidence_card(tester.measure(method, method_scores(method, subject)));
  std::map<std::string, EvidenceFigure> figures;
  for (const EvidenceFigure& one : card) figures[one.name] = one;
  EXPECT_EQ(figures["flips_by_token"].missing, "no token changes the answer");
  EXPECT_THAT(figures["flips_by_weight"].missing, HasSubstr("changes the answer"));
  EXPECT_TRUE(figures["flips_by_token"].passed && figures["flips_by_weight"].passed);
  EXPECT_EQ(figures["comprehensiveness"].missing, "");
}

// The largest of equal scores is chance.
TEST(Evidence, AMapWithoutOrderIsNotComputed) {
  const SmallModel small = small_model("classifier_fixed");
  const Subject subject = small.subject();
  const Explanation explanation(subject);
  EvidenceTester tester(explanation, {.permutations = 5, .steps = 3, .networks = 1});
  const MethodRow& method = find_method("gradient");
  const at::Tensor scores = method_scores(method, subject);
  const at::Tensor flat = at::full_like(scores, 0.2) * (1 + 1e-7 * at::rand_like(scores));
  const std::vector<const FigureRow*> rows = {&find_figure("comprehensiveness"),
                                              &find_figure("sufficiency"),
                                              &find_figure("flips_by_token")};
  for (const EvidenceFigure& one : evidence_card(tester.measure(method, flat, rows)))
    EXPECT_EQ(one.missing, "the map has no order") << one.name;
  for (const EvidenceFigure& one : evidence_card(tester.measure(method, scores, rows)))
    EXPECT_NE(one.missing, "the map has no order") << one.name;
}

TEST(Evidence, HasAFigureForEveryRowThatApplies) {
  for (const char* name : {"seq2seq", "classifier_class", "lm"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const Explanation explanation(subject);
    EvidenceTester tester(explanation, {.permutations = 5, .rows = 2, .steps = 3});
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

// Figures of a method by name.
std::map<std::string, FigureValue> figures_of(const SmallModel& small, const char* method,
                                              const WeightTestOptions& options = {}) {
  const Subject subject = small.subject();
  const Explanation explanation(subject);
  EvidenceTester tester(explanation, options);
  const MethodRow& row = find_method(method);
  std::map<std::string, FigureValue> figures;
  for (const MeasuredFigure& one :
       tester.measure(row, method_scores(row, subject, explanation.trace())))
    figures.emplace(one.row->name, one.figure);
  return figures;
}

TEST(Evidence, RanksTheTokensInScopeAlone) {
  // Three of five keys are in scope; any two maps would agree on the zeros outside.
  SmallModel small = test::model_with_rules("window");
  auto figures = figures_of(small, "attention");
  for (const char* name : {"tau_gradient", "tau_occlusion", "tau_random_weights"}) {
    ASSERT_NE(figures.at(name).missing, nullptr) << name;
    EXPECT_THAT(figures.at(name).missing, HasSubstr("four keys"));
  }
  EXPECT_EQ(figures.at("uniform_weights").missing, nullptr);
  // Methods without weights score all tokens.
  figures = figures_of(small, "gradient");
  EXPECT_EQ(figures.at("tau_occlusion").missing, nullptr);
  small.source = "a b c d e a b c";
  const Subject subject = small.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  const Tensor scope = method_scope(find_method("attention"), subject, trace);
  EXPECT_TRUE(scope[1].equal(at::arange(8) < 3)) << scope;
  EXPECT_TRUE(method_scope(find_method("shifted"), subject, trace)[0].equal(scope[1]));
  EXPECT_TRUE(method_scope(find_method("gradient"), subject, trace).all().item<bool>());
}

TEST(Evidence, FollowsTheScopesOfAllLayers) {
  const SmallModel small("narrow", "classifier",
                         {"model.depth=8", "model.heads=2", "model.layers=2",
                          "model.scope=window:1", "model.pooling=class"});
  const Subject subject = small.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  // The class token sees one more token per layer.
  const auto seen = [&](const char* method) {
    return method_scope(find_method(method), subject, trace)[0].sum().item<int64_t>();
  };
  EXPECT_EQ(seen("attention"), 1);
  EXPECT_EQ(seen("rollout"), 2);
}

// Tokens out of scope are neither ranked nor counted, whatever their scores are.
TEST(Evidence, OfEveryMethodLooksAtWhatTheAnswerSeesAlone) {
  SmallModel narrow("narrow", "classifier",
                    {"model.depth=8", "model.heads=2", "model.layers=2", "model.scope=window:2",
                     "model.pooling=class"});
  SmallModel window = test::model_with_rules("window");
  for (SmallModel* small : {&narrow, &window}) {
    small->source = "a b c d e a b c";
    const Subject subject = small->subject();
    const Explanation explanation(subject);
    EvidenceTester tester(explanation, {.permutations = 5, .steps = 3, .networks = 1});
    for (const MethodRow& row : method_table()) {
      if (!refusal_reason(row, subject, explanation.trace()).empty()) continue;
      SCOPED_TRACE(small->name + ' ' + row.name);
      const Tensor scores = method_scores(row, subject, explanation.trace());
      const Tensor hidden =
          method_scope(row, subject, explanation.trace(), tester.choice()).logical_not();
      EXPECT_TRUE(small == &window || hidden.any().item<bool>());
      const auto before = tester.measure(row, scores);
      const auto after = tester.measure(row, scores.masked_fill(hidden, 1e6));
      ASSERT_EQ(before.size(), after.size());
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(before[i].figure.value, after[i].figure.value) << before[i].row->name;
        EXPECT_EQ(before[i].figure.other, after[i].figure.other) << before[i].row->name;
      }
    }
  }
  // Two layers with windows of two reach four tokens. Occlusion, which shifts the other tokens,
  // would find more.
  const Subject subject = narrow.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch, {.gradients = true});
  for (const char* name : {"gradient", "occlusion", "jacobian"})
    EXPECT_TRUE(method_scope(find_method(name), subject, trace)[0].equal(at::arange(8) < 4));
}

TEST(Evidence, IsTheSameEachTimeAndLeavesTheDefaultGeneratorAlone) {
  for (const char* name : {"seq2seq", "classifier_mean"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const auto first = figures_of(small, "attention");
    at::manual_seed(11);
    const Tensor wanted = at::rand({3});
    at::manual_seed(11);
    const auto again = figures_of(small, "attention");
    EXPECT_TRUE(at::rand({3}).equal(wanted));
    for (const auto& [figure, value] : first) {
      EXPECT_EQ(again.at(figure).value, value.value) << figure;
      EXPECT_EQ(again.at(figure).other, value.other) << figure;
    }
    const auto other = figures_of(small, "attention", {.seed = 5});
    EXPECT_NE(other.at("permuted_weights").value, first.at("permuted_weights").value);
  }
}

TEST(Evidence, ARandomTokenIsAnotherThanTheLargest) {
  SmallModel small = small_model("classifier_fixed");
  small.source = "a";
  EXPECT_THAT(figures_of(small, "occlusion").at("flips_by_token").missing, HasSubstr("one token"));
  // With two tokens the random one is always the other: the baseline removes it.
  small.source = "a b";
  const Subject subject = small.subject();
  const Tensor plain = trace_network(subject.network(), subject.batch).distributions[0][0];
  for (const bool first : {true, false}) {
    const Tensor left =
        answers_of(subject, {{first ? 1L : 0L}}).answers[0][0];  // without the largest score
    const Explanation explanation(subject);
    EvidenceTester tester(explanation);
    const Tensor scores = at::tensor({first ? 1.0 : 0.0, first ? 0.0 : 1.0}).to(at::kDouble);
    const auto figures = tester.measure(find_method("occlusion"), scores.unsqueeze(0),
                                        {&find_figure("flips_by_token")});
    const Tensor kept = answers_of(subject, {{first ? 0L : 1L}}).answers[0][0];
    EXPECT_EQ(figures[0].figure.value, left.ne(plain.argmax()).item<double>());
    EXPECT_EQ(figures[0].figure.other, kept.ne(plain.argmax()).item<double>());
  }
}

TEST(Evidence, ACardTellsWhatWasNotComputed) {
  const std::vector<EvidenceFigure> card =
      evidence_card({{&find_figure("tau_random_weights"), {.missing = "the reason"}}});
  EXPECT_EQ(card[0].missing, "the reason");
  EXPECT_TRUE(card[0].passed) << "it failed nothing";
  const std::string json = alignment_json({{"a"}, {"b"}, {1, 1, {1}}, "x"}, card);
  EXPECT_THAT(json, HasSubstr(R"("value":null)"));
  EXPECT_THAT(json, HasSubstr(R"("missing":"the reason")"));
  const SmallModel small = small_model("seq2seq");
  const TestedMethod method{&find_method("attention"), at::ones({3, 5}), card};
  std::ostringstream page;
  write_page(page, answer_page(small.subject(), {{method}}));
  EXPECT_THAT(page.str(), HasSubstr(R"("missing":"the reason")"));
}

TEST(Evidence, ACardSaysWhatFailed) {
  const std::vector<EvidenceFigure> card = evidence_card(
      {{&find_figure("comprehensiveness"), {0.1, 0.2}}, {&find_figure("tau_gradient"), {0.5}}});
  ASSERT_EQ(card.size(), 2U);
  EXPECT_FALSE(card[0].passed);
  EXPECT_EQ(card[0].bar, "above a random order, 0.200");
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
  EXPECT_EQ(merge_words(map.slice(0, 0, 0), group_words({}), groups).sizes(),
            (std::vector<int64_t>{0, 3}));
}

TEST(LayerMaps, HardAlignmentsAreThoseOfTheLargestScores) {
  EXPECT_EQ(pharaoh(at::tensor({0.1, 0.9, 0.8, 0.2}).view({2, 2})), "1-0 0-1");
}

TEST(LayerMaps, APageHoldsMethodsAndLayers) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const MethodRow& row = find_method("attention");
  const Tensor scores = method_scores(row, subject).slice(0, 0, 3);
  const ExplanationPage page = answer_page(subject, {{{&row, scores}}, "a note"});
  EXPECT_EQ(page.methods.size(), 1U);
  EXPECT_EQ(page.maps.size(), 6U);
  EXPECT_EQ(page.tokens[page.maps[3].columns].tokens.size(), 5U);
  std::ostringstream out;
  write_page(out, page);
  EXPECT_THAT(out.str(), HasSubstr("a note"));
}

TEST(LayerMaps, APageOfALongSourceHasWhatTakesFewPasses) {
  const SmallModel small = small_model("transformer");
  const Explanation explanation = small.subject();
  const int64_t length = explanation.subject().source_length();
  const auto tested_page = [&](const MethodRow* only, const MethodChoice& choice) {
    return answer_page(explanation, test_methods(explanation, only, choice));
  };
  const MethodChoice long_source{.max_passes = length - 1};
  const ExplanationPage page = tested_page(nullptr, long_source);
  EXPECT_FALSE(page.methods.empty());
  EXPECT_EQ(page.maps.size(), 6U);
  for (const PageMethod& method : page.methods) {
    EXPECT_FALSE(find_method(method.name).takes_long) << method.name;
    EXPECT_TRUE(method.card.empty()) << method.name;
  }
  EXPECT_THAT(page.note, HasSubstr("the source is long: value_zeroing, alti, "));
  const MethodRow& named = find_method("occlusion");
  EXPECT_FALSE(tested_page(&named, long_source).methods[0].card.empty());
  const MethodChoice short_source{.max_passes = length};
  EXPECT_GT(tested_page(nullptr, short_source).methods.size(), page.methods.size());
}

// A fill-in model answers with the tokens of its source.
TEST(LayerMaps, TwoSequencesOfEqualTokensAreTwo) {
  const SmallModel small = small_model("encoder");
  const Subject subject = small.subject();
  ASSERT_EQ(subject.source, subject.target);
  const MethodRow& row = find_method("occlusion");
  const ExplanationPage page = answer_page(subject, {{{&row, method_scores(row, subject)}}});
  EXPECT_NE(page.methods[0].rows, page.methods[0].columns);
  EXPECT_EQ(page.tokens[page.methods[0].rows].name, "answer");
  EXPECT_EQ(page.maps[0].rows, page.maps[0].columns) << "self-attention is over one";
}

}  // namespace evidence_test
}  // namespace attend
