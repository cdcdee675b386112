#include "attend/machine/blas.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "attend/kernels/cpu.h"

namespace attend {
namespace blas_test {

// Output of the program on a simulated processor unknown to OpenBLAS.
std::string on_unknown_processor(const std::string& environment) {
  const std::string command = "env -u OPENBLAS_CORETYPE -u ATTEND_OPENBLAS_CORETYPE " +
                              environment + " " BLAS_PROGRAM " one 'two 2'";
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_TRUE(pipe);
  std::array<char, 1000> text{};
  const size_t size = fread(text.data(), 1, text.size(), pipe);
  EXPECT_EQ(pclose(pipe), 0);
  return {text.data(), size};
}

std::string widest() {
  for (const std::string& target : probe_cpu().targets) {
    if (target == "AVX3") return "SKYLAKEX";
    if (target == "AVX2") return "HASWELL";
  }
  return "";
}

TEST(Blas, AnUnknownProcessorGetsTheKernelsOfItsVectors) {
  if (loaded_blas().kind == "mkl") GTEST_SKIP() << "this LibTorch does not ask OpenBLAS";
  const std::string core = widest();
  if (core.empty()) GTEST_SKIP() << "no AVX2: the narrow kernels are the right ones";
  EXPECT_EQ(on_unknown_processor(""), core + "||" + core + "|one|two 2");
}

TEST(Blas, TheCallersOwnChoiceWins) {
  if (loaded_blas().kind == "mkl") GTEST_SKIP() << "this LibTorch does not ask OpenBLAS";
  EXPECT_EQ(on_unknown_processor("OPENBLAS_CORETYPE=Nehalem"),
            "Nehalem|" + widest() + "||one|two 2");
  EXPECT_EQ(on_unknown_processor("OPENBLAS_CORETYPE=Haswell"), "Haswell|||one|two 2");
}

TEST(Blas, SaysWhatIsSlowAndWhatHelps) {
  const Blas blas{.kind = "openblas-openmp",
                  .file = "libopenblas.so",
                  .core = "Prescott",
                  .better_core = "SKYLAKEX",
                  .chosen_core = ""};
  EXPECT_EQ(slow_products(blas, {.product = 63e9, .peak = 125e9}), "");
  EXPECT_EQ(slow_products(blas, {.product = 22e9, .peak = 125e9}),
            "matrix products reach 22 of this core's 125 GFLOP/s with OpenBLAS's Prescott kernels; "
            "export OPENBLAS_CORETYPE=SKYLAKEX");
}

TEST(Blas, MeasuresProductsAndThePeak) {
  const ProductSpeed speed = measure_products();
  EXPECT_GT(speed.product, 0);
  EXPECT_GT(speed.peak, 0);
}

}  // namespace blas_test
}  // namespace attend
