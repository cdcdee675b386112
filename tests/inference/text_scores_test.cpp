#include "attend/inference/text_scores.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "tests/support/files.h"

namespace attend::text_scores_test {

using testing::HasSubstr;

TEST(TextScores, EndsBetweenAnswersWhereItIsStopped) {
  const TextScores scores({{"accuracy", "token_error"}},
                          {{.text = "a", .references = {"a"}}, {.text = "b", .references = {"a"}}});
  EXPECT_EQ(scores.all()["accuracy"], 0.5);
  int asked = 0;
  EXPECT_EQ(scores.all([&] { return ++asked > 4; }), scores.all());
  EXPECT_EQ(asked, 4) << "before each answer and metric";
  asked = 0;
  EXPECT_THAT(test::error_of([&] { (void)scores.all([&] { return ++asked > 2; }); }),
              HasSubstr("cancelled"));
  EXPECT_EQ(asked, 3);
}

TEST(TextScores, RefusesAMetricThatIsNotToldFromAnswers) {
  EXPECT_THAT(test::error_of([] { TextScores({{"loss"}}, {{.text = "a", .references = {"a"}}}); }),
              HasSubstr("loss cannot be computed from answers"));
}

// White space and Unicode are normalised as in training.
TEST(TextScores, AccuracyAndF1ReadOneLabelAlike) {
  const TextScores scores({{"accuracy", "f1"}, {}, Units::line},
                          {{.text = "pos", .references = {"pos \t"}},
                           {.text = " caf\u00e9", .references = {"cafe\u0301"}}});
  EXPECT_EQ(scores.all()["accuracy"], 1);
  EXPECT_EQ(scores.all()["f1"]["f1"], 1);
  EXPECT_EQ(scores.each(0)["f1"], 1);
}

}  // namespace attend::text_scores_test
