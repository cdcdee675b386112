#include "attend/kernels/cpu.h"

#include <hwy/targets.h>
#include <sched.h>

#include <fstream>
#include <string_view>
#include <thread>

namespace attend {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!std::string_view(line).starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  const auto supported = static_cast<uint64_t>(hwy::SupportedTargets());
  // Highway gives the better target the lower bit.
  for (int bit = 0; bit < 63; ++bit) {
    const uint64_t target = uint64_t{1} << bit;
    if (supported & target) names.emplace_back(hwy::TargetName(static_cast<int64_t>(target)));
  }
  return names;
}

int64_t allowed_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  // The machine has more cores than the set can hold.
  return std::thread::hardware_concurrency();
}

// Containers limit time instead of cores: "quota period" in microseconds, or "max period".
double core_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? quota / period : 0;
}

}  // namespace

Cpu probe_cpu() {
  return {.model = cpu_model(),
          .targets = simd_targets(),
          .cores = allowed_cores(),
          .quota = core_quota()};
}

}  // namespace attend
