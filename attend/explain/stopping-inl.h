#pragma once

#include <functional>
#include <string>

#include "attend/inference/model.h"

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

// The model's answer to a source. Error as soon as the function of this thread's guard returns
// true.
Answer answer_unless_stopped(const Model& model, const std::string& source,
                             const SearchOptions& search);

}  // namespace attend
