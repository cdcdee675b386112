#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// The processor as the kernels see it.
struct Cpu {
  std::string model;                 // as the system names it; "unknown" where it does not
  std::vector<std::string> targets;  // Highway's names of the SIMD targets it runs, best first
  int64_t cores = 1;                 // that this process may run on
  double quota = 0;  // cores' worth of time that its control group allows; 0: no limit
};

Cpu probe_cpu();

}  // namespace attend
