#include "attend/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace attend {
namespace {

std::string metric_head(const std::string& name, const std::string& type, const std::string& help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

}  // namespace

void Histogram::add(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

std::string Histogram::text(const std::string& name) const {
  std::string result;
  int64_t count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    result += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name,
                          i < bounds_.size() ? fmt::format("{:g}", bounds_[i]) : "+Inf", count);
  }
  return result + fmt::format("{}_sum {}\n{}_count {}\n", name, sum_, name, count);
}

std::vector<double> ServerMetrics::second_bounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
}

void ServerMetrics::count_request(const std::string& route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{route, status}];
  request_seconds_.add(seconds);
}

void ServerMetrics::count_batch(const std::vector<double>& queued_seconds, size_t together) {
  const std::lock_guard lock(mutex_);
  batch_size_.add(static_cast<double>(together));
  for (const double seconds : queued_seconds) queue_seconds_.add(seconds);
}

void ServerMetrics::count_tokens(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  tokens_ += tokens;
}

std::string ServerMetrics::text(size_t queue_size, int64_t lost_log_lines) const {
  const std::lock_guard lock(mutex_);
  std::string text = metric_head("attend_build_info", "gauge", "The version of the program.");
  text += fmt::format("attend_build_info{{version=\"{}\"}} 1\n", version_);
  text += metric_head("attend_requests_total", "counter", "Requests by route and status.");
  for (const auto& [key, count] : requests_)
    text += fmt::format("attend_requests_total{{route=\"{}\",code=\"{}\"}} {}\n", key.first,
                        key.second, count);
  const auto add = [&](const Histogram& histogram, const std::string& name,
                       const std::string& help) {
    text += metric_head(name, "histogram", help) + histogram.text(name);
  };
  add(request_seconds_, "attend_request_duration_seconds",
      "Seconds from the last byte of a request to the last byte of its answer.");
  add(queue_seconds_, "attend_queue_duration_seconds", "Seconds that requests waited for a model.");
  add(batch_size_, "attend_batch_size", "Texts in a thread's batch when requests joined it.");
  text += metric_head("attend_queue_size", "gauge", "Requests that wait for a model.");
  text += fmt::format("attend_queue_size {}\n", queue_size);
  text += metric_head("attend_tokens_total", "counter", "Tokens of sources and answers.");
  text += fmt::format("attend_tokens_total {}\n", tokens_);
  text +=
      metric_head("attend_log_lines_lost_total", "counter", "Log lines that could not be written.");
  return text + fmt::format("attend_log_lines_lost_total {}\n", lost_log_lines);
}

}  // namespace attend
