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
  std::vector<const MethodRow*> methods = {};  // empty: all that apply to the model
  std::vector<const FigureRow*> figures = {};  // empty: all
  int64_t examples = 200;                      // of the data, evenly spaced; 0: all
  bool forced = false;  // explains the targets of the data in place of the model's answers
  int64_t threads = 0;  // 0: one a core; the figures do not depend on it
  WeightTestOptions weights = {};
};

// A figure's mean over a data set, with its 95 % interval by 1,000 bootstrap samples of the
// examples (Efron 1979).
struct FaithfulnessFigure {
  const MethodRow* method = nullptr;
  const FigureRow* figure = nullptr;
  double mean = 0, low = 0, high = 0;
  double other = 0;  // the mean of what it is compared with, where it is
  bool passed = false;
};

struct Faithfulness {
  int64_t examples = 0;
  std::vector<FaithfulnessFigure> figures;  // by method, then by figure, as in their tables
  std::vector<std::string> left_out;        // methods that do not apply, and why
};

// Tests maps of a model over a data set. Error where a method that is asked for does not apply, and
// where no example can be explained.
Faithfulness measure_faithfulness(
    const Model& model, const std::vector<Example>& examples,
    const FaithfulnessOptions& options = {},
    const std::function<void(int64_t done, int64_t total)>& report = {});

// One JSON document.
std::string faithfulness_json(const Faithfulness& measured);

// Figures as panels, each with the interval of every method. A self-contained SVG 1.1 document.
std::string faithfulness_svg(const Faithfulness& measured, const std::string& title);

}  // namespace attend
