#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/explain/answer_page.h"
#include "attend/explain/evidence.h"
#include "attend/explain/methods.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace contrast_test {

using at::Tensor;
using test::small_model;
using test::small_models;
using test::SmallModel;
using testing::ElementsAre;
using testing::HasSubstr;

NetworkTrace traced(const Subject& subject) {
  return trace_network(subject.network(), subject.batch, {.gradients = true});
}

// A token other than the answer's last that is possible in its place.
int64_t other_last(const Subject& subject) {
  const Tensor possible = traced(subject).distributions[0][-1].detach();
  const int64_t own = subject.batch.target[0][-1].item<int64_t>();
  for (int64_t id = subject.model.target_vocabulary.size() - 1; id >= 0; --id)
    if (id != own && std::isfinite(possible[id].item<double>())) return id;
  throw std::logic_error("no other token");
}

// The subject with another last token, and so with the same inputs of the network.
Subject with_last(const Subject& subject, int64_t token) {
  Subject other = subject;
  other.batch.target = subject.batch.target.clone();
  other.batch.target[0][-1] = token;
  return other;
}

Subject compared_at_last(const Subject& subject, int64_t token) {
  Subject compared = subject;
  compared.against = subject.batch.target[0].clone();
  compared.against[-1] = token;
  return compared;
}

// Scores of the answer's last token.
Tensor last_scores(const MethodRow& row, const Subject& subject) {
  return method_scores(row, subject)[-1];
}

// Two answers can be compared only by methods with scores that depend on the answer's token.
TEST(Contrast, RowsSayWhatScoresAreOf) {
  for (const SmallModel& small : small_models()) {
    if (!small.model.answer_kind().shares_probability()) continue;
    const Subject subject = small.subject();
    const NetworkTrace trace = traced(subject);
    const int64_t token = other_last(subject);
    for (const MethodRow& row : method_table()) {
      if (!refusal_reason(row, subject, trace).empty()) continue;
      SCOPED_TRACE(small.name + ' ' + row.name);
      const bool same = last_scores(row, subject)
                            .allclose(last_scores(row, with_last(subject, token)), 1e-9, 1e-12);
      EXPECT_EQ(same, row.what != ScoresOf::answer);
      const Subject compared = compared_at_last(subject, token);
      if (row.what == ScoresOf::answer)
        EXPECT_TRUE(at::isfinite(method_scores(row, compared)).all().item<bool>());
      else
        EXPECT_THAT(test::error_of([&] { method_scores(row, compared); }),
                    HasSubstr("cannot compare two"));
    }
  }
}

// For methods linear in the log probabilities, the scores are the difference of both answers'
// scores.
TEST(Contrast, ScoresAreThoseOfTheDifference) {
  for (const SmallModel& small : small_models()) {
    if (!small.model.answer_kind().shares_probability()) continue;
    const Subject subject = small.subject();
    const NetworkTrace trace = traced(subject);
    const int64_t token = other_last(subject);
    const Subject compared = compared_at_last(subject, token);
    for (const char* name : {"gradient_x_input", "attention_x_gradient", "decompx", "occlusion",
                             "integrated_gradients"}) {
      const MethodRow& row = find_method(name);
      if (!refusal_reason(row, subject, trace).empty()) continue;
      SCOPED_TRACE(small.name + ' ' + name);
      const Tensor wanted = last_scores(row, subject) - last_scores(row, with_last(subject, token));
      const Tensor found = method_scores(row, compared);
      // Each integral has an error of up to a hundredth of its sum.
      const double off = std::string(name) == "integrated_gradients"
                             ? 0.03 * wanted.abs().sum().item<double>()
                             : 1e-9;
      EXPECT_LE((found[-1] - wanted).abs().max().item<double>(), off + 1e-9);
      EXPECT_FALSE((found.slice(0, 0, -1) != 0).any().item<bool>()) << "nothing is asked";
    }
  }
}

TEST(Contrast, OneTokenOrAsManyAsTheAnswerHas) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const auto ids = [](const Tensor& tokens) {
    return std::vector<int64_t>(tokens.data_ptr<int64_t>(),
                                tokens.data_ptr<int64_t>() + tokens.numel());
  };
  const auto id = [&](const char* token) { return small.model.target_vocabulary.id(token); };
  EXPECT_THAT(ids(compared_with(subject, "x").against),
              ElementsAre(id("x"), id("x"), id("x"), id("x")));
  EXPECT_THAT(asked_places(compared_with(subject, "x"), 9), ElementsAre(1, 2));
  EXPECT_THAT(ids(compared_with(subject, "x z z").against),
              ElementsAre(id("x"), id("z"), id("z"), Vocabulary::eos));
  EXPECT_THAT(asked_places(compared_with(subject, "x z z"), 9), ElementsAre(1));
  EXPECT_FALSE(compared_with(subject, "").against.defined());
  const auto error = [](const Subject& of_subject, const char* other) {
    return test::error_of([&] { compared_with(of_subject, other); });
  };
  EXPECT_THAT(error(subject, "x y"), HasSubstr("has 2 tokens, and the model's has 3"));
  EXPECT_THAT(error(subject, "x y z"), HasSubstr("the model's own"));
  EXPECT_THAT(error(subject, "x ? z"), HasSubstr("'?' is not one of the"));
  const SmallModel number = small_model("classifier_number");
  EXPECT_THAT(error(number.subject(), "2"), HasSubstr("answers with a number"));
}

TEST(Contrast, OfLabelsIsShownByOcclusion) {
  const SmallModel small = small_model("classifier_fixed");
  const Subject compared = compared_with(small.subject(), "bad");
  EXPECT_STREQ(default_method(compared).name, "occlusion");
  EXPECT_THAT(test::error_of([&] { compared_with(small.subject(), "good"); }),
              HasSubstr("give another"));
  const ExplanationPage page = answer_page(compared, {});
  EXPECT_EQ(page.title, "a b c d e -> good, not bad");
}

// Evidence uses the probability of the answer among the two.
TEST(Contrast, EvidenceIsOfTheShareOfTheTwo) {
  const SmallModel small = small_model("classifier_fixed");
  const Subject subject = compared_with(small.subject(), "bad");
  const Explanation explanation(subject);
  EvidenceTester tester(explanation);
  const MethodRow& method = find_method("occlusion");
  const Tensor scores = method_scores(method, subject);
  const auto figures = tester.measure(method, scores, {&find_figure("comprehensiveness")});
  const int64_t bad = small.model.target_vocabulary.id("bad");
  const auto share = [&](const std::string& source) {
    SmallModel other = small;
    other.source = source;
    const Subject read = other.subject();
    const Tensor all = traced(read).distributions[0][0].detach().exp();
    const double good = all[read.batch.target[0][0]].item<double>();
    return good / (good + all[bad].item<double>());
  };
  const Tensor order = scores[0].argsort(0, true);
  const auto without = [&](int64_t count) {
    std::string left;
    for (int64_t token = 0; token < 5; ++token)
      if (!order.slice(0, 0, count).eq(token).any().item<bool>())
        left += std::string(1, static_cast<char>('a' + token)) + ' ';
    return share(left);
  };
  // 1, 5, 10 and 20 % of 5 tokens are one token, 50 % are three (2.5 is rounded up).
  const double wanted = share("a b c d e") - (4 * without(1) + without(3)) / 5;
  EXPECT_NEAR(figures[0].figure.value, wanted, 1e-9);
}

TEST(Contrast, EvidenceIsOfThePlacesThatAreAsked) {
  for (const char* name : {"transformer", "seq2seq"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = compared_with(small.subject(), "x z z");
    const Explanation explanation(subject);
    EvidenceTester tester(explanation, {.permutations = 5, .steps = 3, .networks = 1});
    EXPECT_THAT(tester.choice().tokens, ElementsAre(1));
    const MethodRow& method = find_method("attention_x_gradient");
    const Tensor scores = method_scores(method, subject, explanation.trace(), tester.choice());
    const auto figures = tester.measure(method, scores);
    EXPECT_EQ(figures.size(), figure_table().size()) << "weights are tested, too";
    for (const MeasuredFigure& one : figures) EXPECT_TRUE(std::isfinite(one.figure.value));
  }
}

}  // namespace contrast_test
}  // namespace attend
