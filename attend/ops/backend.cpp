#include "attend/ops/backend.h"

#include <vector>

#include "attend/ops/fused-inl.h"

namespace attend {
namespace {

// In order of registration.
std::vector<const Backend*>& backends() {
  static std::vector<const Backend*> all = {&cpu_backend()};
  return all;
}

}  // namespace

BackendRegistration::BackendRegistration(const Backend& backend) { backends().push_back(&backend); }

BackendRegistration::~BackendRegistration() { backends().pop_back(); }

BackendChoice choose_backend(const Parts& parts, const LoweredSpec& spec) {
  BackendChoice choice;
  for (auto each = backends().rbegin(); each != backends().rend(); ++each) {
    choice.obstacle = (*each)->refusal_reason(parts, spec);
    if (choice.obstacle.empty()) return {*each};
  }
  return choice;
}

}  // namespace attend
