#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "attend/metrics/metric.h"
#include "attend/runs/training.h"
#include "attend/train/train_progress.h"

namespace attend {

// Prints training progress to standard error. On a terminal: one line rewritten in place, above
// plots of both losses. Otherwise: a line at intervals. A validation always gets its own line.
class ProgressPrinter {
 public:
  ProgressPrinter();
  ~ProgressPrinter();
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void show(const TrainProgress& progress, const Metric& metric);

 private:
  void show_on_terminal(const std::string& line, bool stays);

  bool terminal_;
  int64_t lines_below_ = 0;  // lines of the plot under the cursor
  double loss_sum_ = 0;      // over the steps since the last point of the plot
  int64_t loss_steps_ = 0;
  std::vector<double> losses_, valid_losses_;
  std::chrono::steady_clock::time_point next_;
};

// Prints the progress of a count after two seconds; erased at the end on a terminal.
class CountPrinter {
 public:
  // `what`: text before the count, such as "decoded".
  explicit CountPrinter(std::string what);
  ~CountPrinter();
  CountPrinter(const CountPrinter&) = delete;
  CountPrinter& operator=(const CountPrinter&) = delete;

  void show(int64_t done, int64_t total);

 private:
  std::string what_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_, next_;
};

// Prints a remark of a reader (PairReader::remarks) to standard error.
void print_remark(const std::string& remark);

// Calls train_model() and prints its messages and progress to standard error. The first SIGINT or
// SIGTERM saves everything and then throws CLI::RuntimeError(128 + signal).
Trained train_with_progress(const TrainOptions& options);

// Prints a line to standard error if matrix products are much slower than the core permits, with
// the remedy.
void warn_about_products();

// "3:07" or "1:02:03".
std::string clock_time(double seconds);

}  // namespace attend
