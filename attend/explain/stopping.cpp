#include <utility>

#include "attend/base/error.h"
#include "attend/explain/stopping-inl.h"

namespace attend {
namespace {

thread_local const std::function<bool()>* asked = nullptr;

}  // namespace

StopGuard::StopGuard(const std::function<bool()>& is_stopped)
    : outer_(std::exchange(asked, &is_stopped)) {}

StopGuard::~StopGuard() { asked = outer_; }

void check_stopped() {
  if (asked != nullptr && *asked && (*asked)()) fail("the explanation was cancelled");
}

}  // namespace attend
