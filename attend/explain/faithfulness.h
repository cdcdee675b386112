#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/explain/evidence.h"
#include "attend/inference/model.h"

namespace attend {

struct FaithfulnessOptions {
  std::vector<const MethodRow*> methods = {};  // empty: all that apply to an example
  std::vector<const FigureRow*> figures = {};  // empty: all
  int64_t examples = 200;                      // taken from the data, evenly spaced; 0: all
  bool forced = false;  // explain the targets of the data instead of the model's answers
  int64_t threads = 0;  // 0: one per core; does not change the figures
  // Applied to each example; its draws use the seed `weights.seed` + its index.
  WeightTestOptions weights = {.networks = 1, .orders = 8};
};

// Mean of a figure over a data set, with its 95 % interval by 1,000 bootstrap samples of the
// examples (Efron 1979).
struct FaithfulnessFigure {
  const MethodRow* method = nullptr;
  const FigureRow* figure = nullptr;
  int64_t examples = 0;  // averaged over these; if 0, the numbers are NaN
  double mean = 0, low = 0, high = 0;
  double other = 0;  // mean of the baseline, if the figure compares
  // Interval of the mean difference to the baseline, from the same samples; 0 without a baseline.
  double difference_low = 0, difference_high = 0;
  // Whether both ends of an interval meet the bar. It is the interval of the difference if there is
  // a baseline, otherwise the interval of the mean.
  bool passed = false;
  std::string missing = {};  // reason for the first missing value; empty: all have values
};

// Examples that could not be explained at all, or not by one method.
struct LeftOut {
  std::string what;  // the method's name; "" for examples
  int64_t examples = 0;
  std::string why;  // reason of the first one
};

struct Faithfulness {
  int64_t examples = 0;                     // explained ones
  std::vector<FaithfulnessFigure> figures;  // by method, then by figure, as in their tables
  std::vector<LeftOut> left_out;            // examples, by reason, then methods
};

// Tests maps of a model over a data set. Error if a chosen method applies to no example, and if no
// example can be explained.
Faithfulness measure_faithfulness(
    const Model& model, const std::vector<Example>& examples,
    const FaithfulnessOptions& options = {},
    const std::function<void(int64_t done, int64_t total)>& report = {});

// "shifted, 3 of 20 examples: no decoder reads the source; take attention"
std::string left_out_text(const LeftOut& one, const Faithfulness& measured);

// Draws the figures as panels, each with the interval of every method. A self-contained SVG 1.1
// document.
std::string faithfulness_svg(const Faithfulness& measured, const std::string& title);

}  // namespace attend
