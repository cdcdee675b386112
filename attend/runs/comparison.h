#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/data/text_config.h"
#include "attend/inference/evaluation.h"

namespace attend {

// The models of one row: alike but for their seeds.
struct ComparedRow {
  std::string name;
  TextConfig text = {};
  std::vector<Evaluation> runs = {};  // one a seed
  double minutes = 0;                 // of training, the mean of the runs
};

// Mean and sample standard deviation, 0 of a single number.
struct Spread {
  double mean = 0;
  double deviation = 0;
};
Spread spread_of(const std::vector<double>& numbers);

// Lengths first ... last of a source, in tokens.
struct LengthRange {
  int64_t first = 0;
  int64_t last = 0;

  bool holds(int64_t length) const { return first <= length && length <= last; }
};

// Up to six ranges that together hold every length of the test, about alike in width but for the
// ends, which take the rare ones.
std::vector<LengthRange> length_ranges(const Evaluation& evaluation);

// What rows are compared by: a figure of the answers to sources that long.
struct ComparedFigure {
  std::string name;  // "token error"
  std::string key;   // "token_error_rates", in JSON
  bool is_share;     // of 1, shown in per cent
  std::function<double(const ComparedRow&, const Evaluation&, const LengthRange&)> of;
};

// The figures of `metric`, "token_error" or "bleu". Answer i of each run is to examples[i], which
// must outlive the figures. The charts show the first, tables the last by length.
std::vector<ComparedFigure> compared_figures(const std::string& metric,
                                             const std::vector<Example>& examples);

// A Markdown table: a line a row, with the figures of all tests and the last of them by the length
// of the source.
std::string comparison_table(const std::vector<ComparedRow>& rows,
                             const std::vector<ComparedFigure>& figures);

// The first figure against the length of the source, a line a row; the band is the range over the
// seeds.
std::string comparison_chart(const std::vector<ComparedRow>& rows,
                             const std::vector<ComparedFigure>& figures);

nlohmann::json comparison_json(const std::vector<ComparedRow>& rows,
                               const std::vector<ComparedFigure>& figures);

}  // namespace attend
