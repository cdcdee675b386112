#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Figures of a benchmark, printed as lines or as one JSON array.

namespace attend::bench {

// Least or largest value that is good enough.
struct ReportBar {
  double value;
  bool at_least;
};

class Report {
 public:
  explicit Report(bool as_json) : as_json_(as_json) {}

  void add(const std::string& name, const std::string& metric, double value,
           std::optional<ReportBar> bar = {}) {
    const bool met = !bar || (bar->at_least ? value >= bar->value : value <= bar->value);
    if (!as_json_)
      fmt::print("{:44} {:44} {:>10.4g}{}\n", name, metric, value,
                 bar ? fmt::format("  {} {} {}", bar->at_least ? ">=" : "<=", bar->value,
                                   met ? "met" : "MISSED")
                     : "");
    std::fflush(stdout);
    nlohmann::ordered_json figure = {
        {"case", name}, {"metric", metric}, {"value", value}, {"bar", nullptr}, {"met", met}};
    if (bar) figure["bar"] = bar->value;
    figures_.push_back(std::move(figure));
  }

  ~Report() {
    if (as_json_) fmt::print("{}\n", figures_.dump(1));
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

 private:
  bool as_json_;
  nlohmann::ordered_json figures_ = nlohmann::ordered_json::array();
};

// Slope of a line through the logarithms of (length, seconds): the cost is proportional to
// length^slope.
inline double exponent(const std::vector<std::pair<double, double>>& samples) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [length, seconds] : samples) {
    const double a = std::log(length), b = std::log(seconds);
    x += a, y += b, xx += a * a, xy += a * b;
  }
  const auto n = static_cast<double>(samples.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

}  // namespace attend::bench
