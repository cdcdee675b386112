#pragma once

#include <string>
#include <vector>

#include "attend/kernels/cpu.h"
#include "attend/machine/blas.h"

namespace attend {

// A cause of slow computation on this machine, and its remedy; one sentence each.
struct MachineProblem {
  std::string problem;
  std::string remedy;
};

// Properties of this machine and process.
struct Diagnosis {
  Cpu cpu;
  int openmp_threads = 0;
  int libtorch_threads = 0;
  Blas blas;
  ProductSpeed speed;    // measured on one core
  double memory_gb = 0;  // 0 if unknown
  double free_memory_gb = 0;
  std::vector<MachineProblem> problems;
};

// Inspects the machine and measures the speed of matrix products for a fraction of a second.
Diagnosis examine_machine();

}  // namespace attend
