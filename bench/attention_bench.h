#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

// Cases of `./dev bench attention` and their reports.

namespace attend::bench {

struct Bar {
  double value;
  bool maximum = false;  // the figure must be at most the value; false: at least
};

inline Bar at_least(double value) { return {value, false}; }
inline Bar at_most(double value) { return {value, true}; }

// One line of the report.
struct Figure {
  std::string name;             // name of the case
  std::string metric;           // measured quantity, with its unit
  std::optional<double> value;  // empty: the case could not run; metric says why
  std::optional<Bar> bar;

  bool met() const;
};

struct ChartSample {
  int64_t length;
  double fraction;  // fraction of the multiply-add peak
};

// Settings of a case and the target of its reports.
struct Bench {
  double seconds = 0.5;  // time per probe
  std::string name;      // name of the running case
  std::function<void(const Figure&)> report;
  // The samples of the picture, by family.
  std::map<std::string, std::vector<ChartSample>> forward_samples = {}, backward_samples = {};

  std::string slow_products = {};  // why the composed path is not a valid measure; else empty

  void add(const std::string& metric, double value, std::optional<Bar> bar = {}) const {
    report({name, metric, value, bar});
  }

  // Adds how many times faster than the composed path something is.
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
void add_bf16_cases(std::vector<Case>& cases);      // bf16 products against fp32
void add_edge_cases(std::vector<Case>& cases);      // along the edges of graphs
void add_decode_cases(std::vector<Case>& cases);    // memory bandwidth, sixteen bits

// A CPU target, measured separately.
struct Target {
  std::string name;
  int64_t bit;
};

std::vector<Target> measured_targets();  // the best, and AVX2 if that is different

// During its lifetime, the kernels use only this target.
class OnTarget {
 public:
  explicit OnTarget(const Target& target);
  ~OnTarget();
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;
};

}  // namespace attend::bench
