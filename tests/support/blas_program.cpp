// Prints its arguments and the core that OpenBLAS was set to. Simulates a processor that OpenBLAS
// mistakes for another: these functions take precedence over the library's functions of the same
// names.
#include <cstdio>
#include <cstdlib>

#include "attend/machine/blas.h"

extern "C" char* openblas_get_corename() {
  static char unknown[] = "Prescott";
  char* told = std::getenv("OPENBLAS_CORETYPE");
  return told ? told : unknown;
}

extern "C" char* openblas_get_config() {
  static char text[] = "OpenBLAS 0.0.0 DYNAMIC_ARCH";
  return text;
}

extern "C" int openblas_get_parallel() { return 2; }

int main(int argc, char** argv) {
  attend::choose_blas_kernels(argv);
  const attend::Blas blas = attend::loaded_blas();
  std::printf("%s|%s|%s", blas.core.c_str(), blas.better_core.c_str(), blas.chosen_core.c_str());
  for (int i = 1; i < argc; ++i) std::printf("|%s", argv[i]);
}
