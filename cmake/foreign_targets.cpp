// Prints a CMake list: the lowest target of Highway in a build for this processor (empty: Highway's
// choice), then the targets that the build leaves out.
#include <hwy/targets.h>

#include <cstdio>

int main() {
  const int64_t supported = hwy::SupportedTargets();
  if (supported & HWY_AVX3) {
    std::fputs("HWY_AVX2;HWY_SSE4", stdout);
  } else if (supported & HWY_AVX2) {
    std::fputs(";HWY_SSE4;HWY_AVX3", stdout);
  } else {
    std::fputs(supported & HWY_SSE4 ? ";HWY_AVX2;HWY_AVX3" : ";HWY_SSE4;HWY_AVX2;HWY_AVX3", stdout);
  }
}
