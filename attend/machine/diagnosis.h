#pragma once

#include <string>
#include <vector>

#include "attend/kernels/cpu.h"
#include "attend/machine/blas.h"

namespace attend {

// Something that makes computations slow on this machine, in a sentence each.
struct MachineProblem {
  std::string problem;
  std::string remedy;
};

// What this machine and this process offer.
struct Diagnosis {
  Cpu cpu;
  int openmp_threads = 0;
  int libtorch_threads = 0;
  Blas blas;
  ProductSpeed speed;    // of one core, measured
  double memory_gb = 0;  // 0 where the system does not say
  double free_memory_gb = 0;
  std::vector<MachineProblem> problems;
};

// Looks at the machine, and multiplies matrices for a fraction of a second to measure the speed.
Diagnosis examine_machine();

}  // namespace attend
