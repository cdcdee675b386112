// Tests of a metric from outside the library: registered, used in validation, evaluated, compared
// and printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attend/data/tables.h"
#include "attend/inference/answer_json.h"
#include "attend/inference/evaluation.h"
#include "attend/metrics/metric.h"
#include "attend/runs/comparison.h"
#include "attend/runs/training.h"
#include "tests/support/files.h"

namespace attend {
namespace own_metric_test {

using testing::HasSubstr;

// Share of answers with the length of a reference.
const Metric length_row = {.name = "length",
                           .key = "right_length",
                           .title = "right length",
                           .needs = MetricNeeds::tokens,
                           .higher_is_better = true,
                           .is_share = true,
                           .measured = MeasuredFor::sequences,
                           .by_length = ByLength::each_length,
                           .count =
                               [](const ScoredAnswer& answer, const MetricOptions&) {
                                 double right = 0;
                                 for (const auto& reference : answer.reference_tokens)
                                   if (reference.size() == answer.tokens.size()) right = 1;
                                 return MetricCounts{{"right", right}, {"answers", 1}};
                               },
                           .figure =
                               [](const MetricCounts& counts, const MetricOptions&) {
                                 return counts.empty() ? 0
                                                       : counts.at("right") / counts.at("answers");
                               }};

TEST(OwnMetric, IsValidatedWithEvaluatedComparedAndPrinted) {
  register_metric(length_row);
  const test::TemporaryFolder folder;
  std::string pairs;
  for (const char a : std::string("bdfgklmnp"))
    for (const char b : std::string("aeiou")) pairs += fmt::format("{0}{1}\t{0} {1}\n", a, b);
  TrainOptions options;
  options.data = options.valid = folder.write("pairs.tsv", pairs);
  options.out = folder / "model";
  options.assignments = {"train.metric=length",     "model.embedding=8",     "model.hidden=16",
                         "model.attention_depth=8", "train.replicas=1",      "train.steps=12",
                         "train.batch=10",          "train.validate_steps=6"};
  const Trained trained = train_model(options);
  EXPECT_EQ(trained.metric.name, "length");

  const Model model(options.out);
  const std::vector<Example> examples = read_examples({options.data}, model.text());
  const Measurement measurement = {.metrics = {&metric_named("length")},
                                   .evaluation = evaluate(model, examples, {})};
  const nlohmann::json json = measurement_json(measurement);
  EXPECT_EQ(json["right_length"], trained.outcome.best_metric);
  EXPECT_EQ(json["by_length"][0]["right_length"], json["right_length"]);
  EXPECT_EQ(metric_named("length").report_text(0.5), "right length          50.00 %\n");

  const std::vector<ComparedRow> rows = {{.name = "one", .runs = {measurement.evaluation}}};
  EXPECT_THAT(comparison_table(rows, metric_named("length")), HasSubstr("right length, %"));
  EXPECT_THAT(comparison_chart(rows, metric_named("length")), HasSubstr("right length against"));
  EXPECT_EQ(comparison_json(rows, metric_named("length"))["mechanisms"][0]["right_length"][0],
            json["right_length"]);
}

}  // namespace own_metric_test
}  // namespace attend
