#include <gtest/gtest.h>

#include "attend/metrics/metric.h"

namespace attend {
namespace squad_metrics_test {

double figure(const char* name, const std::string& text, const std::vector<std::string>& right) {
  ScoredAnswer answer{.text = text, .references = right};
  return measure_answers(metric_named(name), {answer});
}

double exact(const std::string& text, const std::vector<std::string>& right) {
  return figure("squad_exact_match", text, right);
}

double f1(const std::string& text, const std::vector<std::string>& right) {
  return figure("squad_f1", text, right);
}

TEST(SquadMetrics, IgnoreCasePunctuationAndArticles) {
  EXPECT_EQ(exact("The  U.S. Army!", {"us army"}), 1);
  EXPECT_EQ(exact("an apple, a day", {"apple day"}), 1);
  EXPECT_EQ(exact("Ärger", {"ärger"}), 1);
  EXPECT_EQ(exact("theatre", {"atre"}), 0);
  EXPECT_EQ(exact("x\u2013the\u2013y", {"x\u2013 \u2013y"}), 1);  // other marks stay, and end words
}

TEST(SquadMetrics, TakeTheBestReference) {
  EXPECT_EQ(exact("two", {"one", "two"}), 1);
  EXPECT_DOUBLE_EQ(f1("red big car", {"blue", "car red"}), 0.8);
  EXPECT_DOUBLE_EQ(f1("red red", {"red"}), 2.0 / 3);
  EXPECT_EQ(f1("red", {"car"}), 0);
}

TEST(SquadMetrics, CountAnEmptyAnswerIfThereIsNone) {
  for (const auto score : {exact, f1}) {
    EXPECT_EQ(score("", {""}), 1);
    EXPECT_EQ(score("the", {""}), 1);
    EXPECT_EQ(score("car", {""}), 0);
    EXPECT_EQ(score("", {"car"}), 0);
  }
}

}  // namespace squad_metrics_test
}  // namespace attend
