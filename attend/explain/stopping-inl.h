#pragma once

#include <functional>

namespace attend {

// During its lifetime, this thread asks before each pass of a network that an explanation takes
// whether nobody waits for it any more. The function may be empty.
class StopGuard {
 public:
  explicit StopGuard(const std::function<bool()>& is_stopped);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  const std::function<bool()>* outer_;
};

// Error where a guard's function says so.
void check_stopped();

}  // namespace attend
