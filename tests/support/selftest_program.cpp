// The self-test of the kernels without the program and LibTorch, for emulated processors. Prints a
// line per SIMD target; exit code 1 on a failure. tools/conform_processors.py compiles it.
#include <cstdio>

#include "attend/kernels/selftest.h"

int main() {
  int64_t failures = 0;
  for (const auto& finding : attend::kernels::selftest(1)) {
    std::printf("%s %lld %lld %s\n", finding.target.c_str(),
                static_cast<long long>(finding.results), static_cast<long long>(finding.failures),
                finding.result.c_str());
    failures += finding.failures;
  }
  return failures == 0 ? 0 : 1;
}
