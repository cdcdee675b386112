#include "attend/explain/faithfulness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "attend/inference/predictor.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace faithfulness_test {

using test::SmallModel;

Model answering(const SmallModel& small) {
  return Predictor::as_model(std::make_unique<Predictor>(small.model, ModelOptions{.threads = 1}));
}

std::map<std::string, FaithfulnessFigure> measured_figures(const SmallModel& small) {
  std::vector<Example> examples;
  for (const char* source : {"a b c d e", "e d c", "b b a d", "c a", "d e a b", "e e c a b"})
    examples.push_back({source, {"good"}});
  const Faithfulness measured = measure_faithfulness(
      answering(small), examples,
      {.methods = {&find_method("attention")},
       .threads = 1,
       .weights = {.permutations = 5, .steps = 3, .networks = 1, .orders = 8}});
  std::map<std::string, FaithfulnessFigure> figures;
  for (const FaithfulnessFigure& one : measured.figures) figures.emplace(one.figure->name, one);
  return figures;
}

TEST(Faithfulness, PassesByItsInterval) {
  int64_t undecided = 0;
  for (const char* name :
       {"classifier_fixed", "classifier_class", "classifier_mean", "classifier_recurrent"}) {
    for (const auto& [figure, one] : measured_figures(test::small_model(name))) {
      if (one.examples == 0) continue;
      SCOPED_TRACE(std::string(name) + ' ' + figure);
      const FigureRow& row = *one.figure;
      const double low = row.compares ? one.difference_low : one.low;
      const double high = row.compares ? one.difference_high : one.high;
      EXPECT_EQ(one.passed, row.passes({low}) && row.passes({high}));
      if (!row.compares) continue;
      EXPECT_LE(low, one.mean - one.other + 1e-12);
      EXPECT_GE(high, one.mean - one.other - 1e-12);
      // The mean would pass, but the interval includes values that would not.
      if (row.passes({one.mean, one.other}) && !one.passed) ++undecided;
    }
  }
  EXPECT_GT(undecided, 0);
}

TEST(Faithfulness, OfAnswersThatNoTokenChangesIsNotComputed) {
  const SmallModel small = test::small_model("classifier_fixed");
  {
    const at::NoGradGuard not_recorded;
    small.model.network->named_parameters()["output.bias"][0] += 30;
  }
  const auto figures = measured_figures(small);
  EXPECT_EQ(figures.at("flips_by_token").examples, 0);
  EXPECT_EQ(figures.at("flips_by_token").missing, "no token changes the answer");
  EXPECT_GT(figures.at("comprehensiveness").examples, 0);
}

}  // namespace faithfulness_test
}  // namespace attend
