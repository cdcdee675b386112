#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/explain/methods.h"
#include "attend/explain/weight_tests.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Value of a figure and, if FigureRow::compares, of its baseline (a random order).
struct FigureValue {
  double value = 0;
  double other = 0;
  const char* missing = nullptr;  // why the value is missing; null: there is a value
};

class AnswerEvidence;

// Scores that a method gives an answer, as input of figures.
struct MappedScores {
  const MethodRow& method;
  const MethodChoice& choice;
  const at::Tensor& scores;  // [T, S]
  const at::Tensor& scope;   // bool [T, S]: method_scope()
};

// Measurement of a map, one row per figure.
struct FigureRow {
  const char* name;
  const char* meaning;
  const char* paper;
  const char* bar;  // level that a trustworthy map reaches; empty: unknown
  bool compares;    // FigureValue::other is used
  bool (*passes)(const FigureValue& figure);
  // Measures a map; empty if the figure does not apply to its method.
  std::optional<FigureValue> (*measure)(AnswerEvidence& evidence, const MappedScores& map);
  // Why the figure is meaningless if value and baseline are both 0; null: it has a meaning.
  const char* both_zero = nullptr;
  bool needs_order = false;  // not computed for maps with equal scores
};

const std::vector<FigureRow>& figure_table();

// Error with the nearest name if `name` is not a figure.
const FigureRow& find_figure(const std::string& name);

// Figure of one map.
struct MeasuredFigure {
  const FigureRow* row = nullptr;
  FigureValue figure;
};

// Tests whether the answer depends on the tokens that a map points at. Results that do not depend
// on the map are computed once, on first use. At most WeightTestOptions::rows tokens of the answer
// are tested. `explanation` must outlive the tester.
// Untrained networks are drawn from LibTorch's default generator, which is seeded for this and
// restored afterwards. Another thread that draws from it at that moment changes the figures.
class EvidenceTester {
 public:
  explicit EvidenceTester(const Explanation& explanation, const WeightTestOptions& options = {});
  explicit EvidenceTester(Explanation&&, const WeightTestOptions& = {}) = delete;
  ~EvidenceTester();
  EvidenceTester(const EvidenceTester&) = delete;
  EvidenceTester& operator=(const EvidenceTester&) = delete;

  // Choice for method_scores(): only the tokens that the figures test.
  MethodChoice choice() const;

  // Measures the figures of `rows`, or all, on a method's scores [T, S]. Skips figures that do not
  // apply to the method. `choice` is the one that the scores were computed with.
  std::vector<MeasuredFigure> measure(const MethodRow& method, const at::Tensor& scores,
                                      const std::vector<const FigureRow*>& rows = {},
                                      const MethodChoice& choice = {});

 private:
  std::unique_ptr<AnswerEvidence> evidence_;
};

// Returns why a figure has no meaning for its map; null if it has one.
const char* why_missing(const FigureRow& row, const FigureValue& figure);

// Returns the bar of a figure, with the value of its baseline if the row compares.
std::string bar_text(const FigureRow& row, double baseline);

// Returns the figures as a card for a page.
std::vector<EvidenceFigure> evidence_card(const std::vector<MeasuredFigure>& figures);

}  // namespace attend
