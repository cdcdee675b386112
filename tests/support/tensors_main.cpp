// The main function of tests that compute with LibTorch.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "attend/machine/blas.h"
#include "tests/support/seed.h"

namespace attend {
namespace {

// The draws of a test must not depend on which tests run before it in the same process.
class Seeded : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { at::manual_seed(test::seed()); }
};

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  // Tests use the matrix kernels that suit the processor, as the program does.
  attend::choose_blas_kernels(argv);
  attend::test::seed_properties();
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new attend::Seeded);
  return RUN_ALL_TESTS();
}
