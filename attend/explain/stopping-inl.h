#pragma once

#include <functional>

namespace attend {

// During its lifetime, calls `is_stopped` before each network pass of an explanation on this
// thread. The function may be empty; it must outlive the guard.
class StopGuard {
 public:
  explicit StopGuard(const std::function<bool()>& is_stopped);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  const std::function<bool()>* outer_;
};

// Error if the function of this thread's guard returns true.
void check_stopped();

}  // namespace attend
