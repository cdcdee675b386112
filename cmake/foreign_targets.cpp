// Prints the targets of Highway that a build for this processor leaves out, as a list of CMake's.
#include <hwy/targets.h>

#include <cstdio>

int main() {
  const int64_t supported = hwy::SupportedTargets();
  if (!(supported & HWY_AVX2)) {
    std::fputs(supported & HWY_SSE4 ? "HWY_AVX2;HWY_AVX3" : "HWY_SSE4;HWY_AVX2;HWY_AVX3", stdout);
  } else {
    std::fputs(supported & HWY_AVX3 ? "HWY_SSE4" : "HWY_SSE4;HWY_AVX3", stdout);
  }
}
