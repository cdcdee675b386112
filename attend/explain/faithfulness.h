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
  int64_t examples = 200;                      // of the data, evenly spaced; 0: all
  bool forced = false;  // explains the targets of the data in place of the model's answers
  int64_t threads = 0;  // 0: one per core; the figures do not depend on it
  // For each example, whose draws have a seed of their own, `weights.seed` + its place.
  WeightTestOptions weights = {.networks = 1, .orders = 8};
};

// A figure's mean over a data set, with its 95 % interval by 1,000 bootstrap samples of the
// examples (Efron 1979).
struct FaithfulnessFigure {
  const MethodRow* method = nullptr;
  const FigureRow* figure = nullptr;
  int64_t examples = 0;  // that it is over; of 0 the numbers are no numbers
  double mean = 0, low = 0, high = 0;
  double other = 0;  // the mean of what it is compared with, where it is
  // The interval of the mean difference to that, of the same samples; 0 if nothing is compared.
  double difference_low = 0, difference_high = 0;
  // Both ends of the interval meet the bar: of the difference if something is compared, else of the
  // mean.
  bool passed = false;
  std::string missing = {};  // why the first example without it has none; empty: all have
};

// The examples that could not be explained, or not by a method.
struct LeftOut {
  std::string what;  // the method's name; "" of examples
  int64_t examples = 0;
  std::string why;  // the reason of the first of them
};

struct Faithfulness {
  int64_t examples = 0;                     // that were explained
  std::vector<FaithfulnessFigure> figures;  // by method, then by figure, as in their tables
  std::vector<LeftOut> left_out;  // examples, by reason, then methods, with how many they fail on
};

// Tests maps of a model over a data set. Error where a chosen method applies to no example, and
// where no example can be explained.
Faithfulness measure_faithfulness(
    const Model& model, const std::vector<Example>& examples,
    const FaithfulnessOptions& options = {},
    const std::function<void(int64_t done, int64_t total)>& report = {});

// "shifted: 3 of 20 examples: no decoder reads the source; take attention"
std::string left_out_text(const LeftOut& one, const Faithfulness& measured);

// Figures as panels, each with the interval of every method. A self-contained SVG 1.1 document.
std::string faithfulness_svg(const Faithfulness& measured, const std::string& title);

}  // namespace attend
