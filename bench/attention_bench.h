#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The cases of `./dev bench attention` and what they report.

namespace attend::bench {

struct Bar {
  double value;
  bool most = false;  // the figure must be at most the value, else at least
};

inline Bar at_least(double value) { return {value, false}; }
inline Bar at_most(double value) { return {value, true}; }

// One line of the report.
struct Figure {
  std::string name;             // of the case
  std::string metric;           // what was measured, with its unit
  std::optional<double> value;  // none: the case could not run; metric says why
  std::optional<Bar> bar;

  bool met() const;
};

struct ChartSample {
  int64_t length;
  double fraction;  // of the multiply-add peak
};

// What a case measures with and reports to.
struct Bench {
  double seconds = 0.5;  // that each probe may take
  std::string name;      // of the case that runs
  std::function<void(const Figure&)> report;
  // The samples of the picture, by family.
  std::map<std::string, std::vector<ChartSample>> forward_samples = {}, backward_samples = {};

  std::string slow_products = {};  // why LibTorch's composed path is no measure here; else empty

  void add(const std::string& metric, double value, std::optional<Bar> bar = {}) const {
    report({name, metric, value, bar});
  }

  // How many times as fast as the composed path something is.
  void add_over_composed(const std::string& what, double ratio, std::optional<Bar> bar = {}) const {
    const std::string metric = what + "times as fast as composed";
    slow_products.empty() ? report({name, metric, ratio, bar})
                          : report({name, metric + ": " + slow_products, {}, bar});
  }
};

struct Case {
  std::string name;
  bool quick;  // also part of the subset that takes a minute
  std::function<void(Bench&)> run;
};

// Each appends its cases.
void add_peak_cases(std::vector<Case>& cases);      // scaled dot, causal, window, threads, picture
void add_additive_cases(std::vector<Case>& cases);  // cycles, composed path, memory
void add_variant_cases(std::vector<Case>& cases);   // distances, normalisers, sinks, biases
void add_operator_cases(std::vector<Case>& cases);  // through attend::attention; short sequences
void add_bf16_cases(std::vector<Case>& cases);      // products of bf16 against those of fp32
void add_edge_cases(std::vector<Case>& cases);      // along the edges of graphs
void add_decode_cases(std::vector<Case>& cases);    // memory bandwidth, sixteen bits

// The CPU targets that are measured each on its own.
struct Target {
  std::string name;
  int64_t bit;
};

std::vector<Target> measured_targets();  // the best; AVX2 where that is another

// While it lives the kernels use this target alone.
class OnTarget {
 public:
  explicit OnTarget(const Target& target);
  ~OnTarget();
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;
};

}  // namespace attend::bench
