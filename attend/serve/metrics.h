#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace attend {

// Counts values by upper bounds, in the form of a Prometheus histogram.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void add(double value);
  // Lines NAME_bucket{le=".."}, NAME_sum and NAME_count.
  std::string text(const std::string& name) const;

 private:
  std::vector<double> bounds_;   // ascending
  std::vector<int64_t> counts_;  // per bound: values above the bound before; last: the rest
  double sum_ = 0;
};

// Metrics of the server for Prometheus. Thread-safe.
class ServerMetrics {
 public:
  explicit ServerMetrics(std::string version) : version_(std::move(version)) {}

  // `route`: a path of the server, or "other".
  void count_request(const std::string& route, int status, double seconds);
  // `queued_seconds`: queue time of each request that joined a thread's work; `together`: number of
  // texts that the thread was then answering.
  void count_batch(const std::vector<double>& queued_seconds, size_t together);
  void count_tokens(int64_t tokens);  // adds tokens of sources and answers

  // Text format 0.0.4. `queue_size`: requests waiting for a model; `lost_log_lines`: lines that
  // could not be logged.
  std::string text(size_t queue_size, int64_t lost_log_lines) const;

 private:
  static std::vector<double> second_bounds();

  std::string version_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;
  Histogram request_seconds_{second_bounds()}, queue_seconds_{second_bounds()};
  Histogram batch_size_{{1, 2, 4, 8, 16, 32, 64, 128, 256}};
  int64_t tokens_ = 0;
};

}  // namespace attend
