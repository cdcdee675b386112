#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/explain/methods.h"
#include "attend/explain/weight_tests.h"
#include "attend/pictures/map_page.h"

namespace attend {

// The value of a figure and, where the row compares, the value of its baseline (a random order).
struct FigureValue {
  double value = 0;
  double other = 0;
  const char* missing = nullptr;  // why the answer has no value; null: it has one
};

class AnswerEvidence;

// What a method says of an answer, as figures look at it.
struct MappedScores {
  const MethodRow& method;
  const MethodChoice& choice;
  const at::Tensor& scores;  // [T, S]
  const at::Tensor& scope;   // bool [T, S]: method_scope()
};

// What is measured of a map, one row a figure.
struct FigureRow {
  const char* name;
  const char* meaning;
  const char* paper;
  const char* bar;  // what a map that can be believed reaches; empty: nobody knows
  bool compares;    // FigureValue::other is used
  bool (*passes)(const FigureValue& figure);
  // Measures a map; none where the figure does not apply to its method.
  std::optional<FigureValue> (*measure)(AnswerEvidence& evidence, const MappedScores& map);
  // Why the figure says nothing of a map if it and its baseline are 0; null: it says something.
  const char* both_zero = nullptr;
};

const std::vector<FigureRow>& figure_table();

// Error with the nearest name where there is no such figure.
const FigureRow& find_figure(const std::string& name);

// A figure of one map.
struct MeasuredFigure {
  const FigureRow* row = nullptr;
  FigureValue figure;
};

// Tests whether the answer depends on the tokens that a map points at. What does not depend on the
// map is computed once, at its first use. At most WeightTestOptions::rows tokens of the answer are
// tested. `subject` must outlive it. Untrained networks are drawn from LibTorch's default
// generator, which is seeded for that and then put back as it was: figures depend on a thread that
// draws from it at that moment.
class EvidenceTester {
 public:
  explicit EvidenceTester(const Subject& subject, const WeightTestOptions& options = {});
  ~EvidenceTester();
  EvidenceTester(const EvidenceTester&) = delete;
  EvidenceTester& operator=(const EvidenceTester&) = delete;

  // The subject's trace, the argument of why_not() and method_scores().
  const NetworkTrace& trace() const;

  // The choice of a method for these figures: only the tokens that they test.
  MethodChoice choice() const;

  // Measures the figures of `rows`, or all, on a method's scores [T, S]. Figures that do not apply
  // to the method are left out. `choice` is what the scores were made with.
  std::vector<MeasuredFigure> measure(const MethodRow& method, const at::Tensor& scores,
                                      const std::vector<const FigureRow*>& rows = {},
                                      const MethodChoice& choice = {});

 private:
  std::unique_ptr<AnswerEvidence> evidence_;
};

// Why a figure says nothing of its map; null: it does.
const char* why_missing(const FigureRow& row, const FigureValue& figure);

// The bar of a figure, with the value of its baseline where the row compares.
std::string bar_text(const FigureRow& row, double baseline);

// A card as a page shows it.
std::vector<EvidenceFigure> evidence_card(const std::vector<MeasuredFigure>& figures);

}  // namespace attend
