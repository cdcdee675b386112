#pragma once

#include <string>

// The library that computes LibTorch's matrix products, and whether it suits this processor.

namespace attend {

struct Blas {
  // "openblas-openmp", "openblas-pthread", "openblas-serial", "mkl", "blis", "atlas", "reference"
  // or "unknown"
  std::string kind;
  std::string file;  // path of the shared library
  std::string core;  // core type of the kernels that OpenBLAS chose; empty for other libraries
  // OPENBLAS_CORETYPE that suits this processor, if OpenBLAS did not recognise it and chose kernels
  // that leave its wide vectors unused; otherwise empty.
  std::string better_core;
  std::string chosen_core;  // value set by choose_blas_kernels; otherwise empty
};

// Inspects the libraries that this process has loaded.
Blas loaded_blas();

// Restarts the program once with OPENBLAS_CORETYPE set to Blas::better_core, if that is not empty.
// OpenBLAS reads the variable only while it is loaded. A value that is already in the environment
// takes precedence. Call this first in main, with its argv, before threads start or anything is
// printed. Returns if no change is needed or if the program cannot be restarted.
void choose_blas_kernels(char** argv);

// LibTorch's version, such as "1.13.1", and its number of threads.
std::string libtorch_version();
int libtorch_threads();

// Speed of one core in operations per second. A multiply-add counts as two.
struct ProductSpeed {
  double product = 0;  // LibTorch's float32 matrix product, 384 x 384
  double peak = 0;     // from kernels::multiply_add_peak
  bool slow() const { return product < 0.5 * peak; }
};

// Takes 0.05 s of processor time, or 0.2 s if products are slow.
ProductSpeed measure_products();

// Returns a one-line warning with a remedy if matrix products run below half of the core's peak;
// otherwise empty.
std::string slow_products(const Blas& blas, const ProductSpeed& speed);

}  // namespace attend
