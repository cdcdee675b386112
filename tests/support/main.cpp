#include <gtest/gtest.h>

#include "attend/ops/blas.h"

int main(int argc, char** argv) {
  attend::choose_blas_kernels(argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
