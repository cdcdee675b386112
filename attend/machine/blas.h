#pragma once

#include <string>

// Which library computes LibTorch's matrix products, and whether it is right for this processor.

namespace attend {

struct Blas {
  // "openblas-openmp", "openblas-pthread", "openblas-serial", "mkl", "blis", "atlas", "reference"
  // or "unknown"
  std::string kind;
  std::string file;  // the shared object
  std::string core;  // the processor whose kernels OpenBLAS chose; empty for another library
  // The value of OPENBLAS_CORETYPE that suits this processor, where OpenBLAS did not recognise it
  // and chose kernels that leave its vectors unused; else empty.
  std::string better_core;
  std::string chosen_core;  // the one that choose_blas_kernels set; else empty
};

// Looks at the libraries that this process has loaded.
Blas loaded_blas();

// Runs the program again, once, with OPENBLAS_CORETYPE set where Blas::better_core says so:
// OpenBLAS reads the variable only while it is loaded. A value that the caller's environment has
// already wins. Call this first in main, with its argv, before threads start or anything is
// printed. Returns where nothing has to change, or where the program cannot be run again.
void choose_blas_kernels(char** argv);

// LibTorch's version, "1.13.1", and the threads that it computes with.
std::string libtorch_version();
int libtorch_threads();

// The speed of one core in operations per second. A multiply-add counts as two.
struct ProductSpeed {
  double product = 0;  // of a float32 matrix product of 384 x 384 by LibTorch
  double peak = 0;     // of kernels::multiply_add_peak
  bool slow() const { return product < 0.5 * peak; }
};

// Takes a twentieth of a second of processor time, a fifth where products are slow.
ProductSpeed measure_products();

// One line that says that matrix products run below half of the core's peak, and the remedy; empty
// where they do not.
std::string slow_products(const Blas& blas, const ProductSpeed& speed);

}  // namespace attend
