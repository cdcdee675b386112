#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Properties of the processor that matter to the kernels.
struct Cpu {
  std::string model;                 // reported by the system; "unknown" if not reported
  std::vector<std::string> targets;  // Highway's names of the supported SIMD targets, best first
  int64_t cores = 1;                 // available to this process
  double quota = 0;  // CPU time that the control group permits, in cores; 0: no limit
};

Cpu probe_cpu();

}  // namespace attend
