#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "attend/train/trainer.h"

namespace attend {

// Shows training on standard error: one line rewritten in place on a terminal, elsewhere a plain
// line now and then; a validation always gets a line of its own.
class ProgressPrinter {
 public:
  // `metric` names what validation measures.
  explicit ProgressPrinter(std::string metric);

  void show(const TrainProgress& progress);

 private:
  std::string metric_;
  bool terminal_;
  std::chrono::steady_clock::time_point next_;
};

// Shows how far a count has come, once it has taken two seconds; nothing stays on a terminal.
class CountPrinter {
 public:
  // `what` is said before the count: "decoded".
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

// "3:07" or "1:02:03".
std::string clock_time(double seconds);

}  // namespace attend
